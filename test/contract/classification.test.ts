import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorRule, StatusRule } from '../../shared/contract/classification.ts'
import { contractToMarkdown } from '../../shared/contract/markdown.ts'
import { defaultPolicy, type Policy } from '../../shared/domain/policy.ts'
import { tableOf, readMarkdown } from '../docs/markdown.ts'
import { classesOfError, classOfStatus, thenOfClass } from './oracle.ts'
import { sampleContract } from './sample.ts'

const statusRules = (policy: Policy = defaultPolicy) => sampleContract({ policy }).classification.filter((rule): rule is StatusRule => rule.on === 'status')
const errorRules = sampleContract().classification.filter((rule): rule is ErrorRule => rule.on === 'error')
const ruleOf = (rules: readonly StatusRule[], status: number): StatusRule =>
  rules.find(({ from, to }) => status >= from && status <= to) ?? assert.fail(`${status} has no rule`)

test('every status from 100 to 599 means what the table written by hand says', () => {
  assert.equal(classOfStatus.size, 500)
  const rules = statusRules()
  for (let status = 100; status <= 599; status += 1) {
    const rule = ruleOf(rules, status)
    const expected = classOfStatus.get(status)!
    assert.deepEqual(
      { status, class: rule.class, leadsTo: rule.leadsTo, default: rule.default, isOverride: rule.isOverride },
      { status, class: expected, leadsTo: thenOfClass[expected], default: expected === 'ambiguous' ? 'retry' : null, isOverride: false },
    )
    assert.equal(rule.reason === null, expected === 'delivered', `${status} says why`)
  }
})

test('the ranges have no gap, and beyond 599 nothing is relied on', () => {
  const rules = statusRules()
  assert.equal(rules[0]?.from, 100)
  assert.equal(rules.at(-1)?.to, 999)
  for (const [index, { from }] of rules.entries()) if (index > 0) assert.equal(from, rules[index - 1]!.to + 1)
  assert.deepEqual([600, 999].map((status) => ruleOf(rules, status).class), ['ambiguous', 'ambiguous'])
})

test('every error means what the table written by hand says, before and after the request was sent', () => {
  assert.deepEqual(errorRules.map(({ error, phase }) => `${error} ${phase}`), Object.keys(classesOfError).flatMap((error) => [`${error} before_send`, `${error} sent`]))
  for (const rule of errorRules) {
    const expected = classesOfError[rule.error]![rule.phase === 'sent' ? 1 : 0]
    assert.deepEqual([rule.error, rule.phase, rule.class, rule.leadsTo], [rule.error, rule.phase, expected, thenOfClass[expected]])
    if (rule.class === 'ambiguous') assert.ok(rule.default === 'retry' && rule.reason !== null, `${rule.error} has a default and a reason`)
  }
})

test('what the policy sets stands beside what it would be', () => {
  const rules = statusRules({ ...defaultPolicy, statusClasses: new Map([[404, 'permanent'], [410, 'retriable'], [503, 'permanent']]) })
  const told = [404, 410, 503].map((status) => {
    const { from, to, class: found, leadsTo, isOverride, reason } = ruleOf(rules, status)
    return [from, to, found, leadsTo, isOverride, reason]
  })
  assert.deepEqual(told, [
    [404, 404, 'permanent', 'permanent_failure', true, 'set by the policy; otherwise ambiguous'],
    [410, 410, 'retriable', 'retry', true, 'set by the policy; otherwise permanent'],
    [503, 503, 'permanent', 'permanent_failure', true, 'set by the policy; otherwise retriable'],
  ])
  assert.equal(ruleOf(rules, 502).class, 'retriable')
})

test('with one attempt the classes are the same: they say what a failure is, not how many are left', () => {
  assert.deepEqual(statusRules({ ...defaultPolicy, maxAttempts: 1, scheduleMs: [] }), statusRules())
})

test('the Markdown has the same classes, each status once', () => {
  const document = readMarkdown(contractToMarkdown(sampleContract()))
  const written = tableOf(document, 'Status').rows.flatMap(([ranges = '', name = '']) => ranges.split(', ').flatMap((range) => {
    const [from = 0, to = from] = range.split('–').map(Number)
    return Array.from({ length: to - from + 1 }, (_, index) => [from + index, name] as const)
  }))
  const known = written.filter(([status]) => status <= 599).sort(([a], [b]) => a - b)
  assert.deepEqual(known, [...classOfStatus].sort(([a], [b]) => a - b))
  assert.deepEqual(tableOf(document, 'Error').rows.map(([error = '', , before, after]) => [error.replaceAll('`', ''), [before, after]]), Object.entries(classesOfError))
})
