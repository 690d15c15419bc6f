import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { contractToMarkdown } from '../../shared/contract/markdown.ts'
import { inPercent, inWords } from '../../shared/contract/words.ts'
import { defaultPolicy, jitterKinds, type Policy } from '../../shared/domain/policy.ts'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { readMarkdown, tableOf } from '../docs/markdown.ts'
import { faultsOf, sampleContract } from './sample.ts'

const [m, h, d] = [60_000, 3_600_000, 86_400_000]
const contract = sampleContract()

/** As whoever reads it gets it. */
const asJson = (policy: Policy): unknown => JSON.parse(JSON.stringify(sampleContract({ policy })))

test('the JSON is as its schema says, for every kind of policy', () => {
  assert.deepEqual(faultsOf(asJson(defaultPolicy)), [])
  const policies = fc.record({
    strategy: fc.constantFrom('standard' as const, 'exponential' as const), jitter: fc.constantFrom(...jitterKinds), adaptive: fc.boolean(),
    baseMs: fc.integer({ min: 1, max: h }), maxMs: fc.integer({ min: h, max: d }), timeoutMs: fc.integer({ min: 1_000, max: 30_000 }),
    scheduleMs: fc.array(fc.integer({ min: 1, max: d }), { maxLength: 9 }),
    statusClasses: fc.dictionary(fc.constantFrom('404', '410', '503'), fc.constantFrom('retriable' as const, 'ambiguous' as const, 'permanent' as const)),
  }).map(({ statusClasses, ...fields }): Policy => ({
    ...fields, maxAttempts: fields.scheduleMs.length + 1, statusClasses: new Map(Object.entries(statusClasses).map(([status, name]) => [Number(status), name])),
  }))
  fc.assert(fc.property(policies, (policy) => assert.deepEqual(faultsOf(asJson(policy)), [])), { numRuns: 30 })
})

test('the schema refuses what is missing, too much or of another kind', () => {
  const { states, ...without } = contract
  for (const wrong of [without, { ...contract, extra: 1 }, { ...contract, states: states.slice(0, 0) }, { ...contract, totalTimeBudget: { nominalMs: 1 } }]) {
    assert.notDeepEqual(faultsOf(JSON.parse(JSON.stringify(wrong))), [])
  }
})

test('attempts and the time budget of the default, computed by hand', () => {
  const nominal = [0, 1, 6, 36, 156, 636, 2076, 4956].map((minutes) => minutes * m)
  assert.deepEqual(contract.attempts.map(({ attempt, nominalMs }) => [attempt, nominalMs]), nominal.map((at, index) => [index + 1, at]))
  assert.deepEqual(contract.attempts.map(({ earliestMs }) => earliestMs), nominal)
  assert.deepEqual(contract.attempts.map(({ latestMs }) => latestMs), nominal.map((at, index) => at * 11 / 10 + index * 30_000))
  const { nominalMs, bestMs, worstMs, withAdaptive, withoutAdaptive } = contract.totalTimeBudget
  assert.deepEqual({ nominalMs, bestMs, worstMs }, { nominalMs: 82.6 * h, bestMs: 82.6 * h, worstMs: 90.86 * h + 4 * m })
  assert.deepEqual(withoutAdaptive, { nominalMs, bestMs, worstMs })
  assert.deepEqual(withAdaptive, { nominalMs: 82.6 * h, bestMs: 41.3 * h, worstMs: 181.72 * h + 4 * m })
})

test('the adaptive factors, the Retry-After rules and the health are the published ones', () => {
  const { adaptive, retryAfter } = contract.backoff
  assert.deepEqual(adaptive.factors, [{ factor: 0.5, healthAbove: 0.9 }, { factor: 1, healthAbove: 0.5 }, { factor: 2, healthAbove: null }])
  assert.deepEqual([retryAfter.capMs, retryAfter.throttlingStatuses], [24 * h, [429, 503]])
  assert.match(adaptive.health, /e\^\(-0\.1 x age in hours\) over the endpoint's last 100 attempts/)
})

test('P(delivered): 99.6 % at availability 0.5 and 8 attempts, as published', () => {
  const shares = contract.guarantee.deliveredShare
  for (const { availability, attempts, share } of shares) {
    let allFail = 1
    for (let n = 0; n < attempts; n += 1) allFail *= 1 - availability
    assert.ok(Math.abs(share - (1 - allFail)) < 1e-12)
  }
  const published = shares.find(({ availability, attempts }) => availability === 0.5 && attempts === 8)
  assert.equal(published?.share, 0.996_093_75)
  const row = tableOf(readMarkdown(contractToMarkdown(contract)), 'Availability').rows.find(([availability]) => availability === '0.5')
  assert.equal(row?.at(-1), '99.6 %')
})

test('the key is the delivery id, in the headers that each scheme sends', () => {
  assert.deepEqual(contract.idempotency.key.headers, ['X-Webhook-Delivery', 'Idempotency-Key'])
  assert.deepEqual(sampleContract({ scheme: 'standard' }).idempotency.key.headers, ['X-Webhook-Delivery', 'webhook-id', 'Idempotency-Key'])
})

test('the dedupe window is longer than the horizon, a dead letter\'s life and the horizon of its replay', () => {
  const { repeatsWithinMs, dedupeWindowMs, rules } = contract.idempotency.receiver
  assert.ok(repeatsWithinMs >= contract.context.deadline.deliveryMs && repeatsWithinMs >= contract.totalTimeBudget.worstMs)
  assert.ok(dedupeWindowMs >= 14 * d + 30 * d + 14 * d)
  const then = (answer: RegExp) => rules.find((rule) => answer.test(rule.answer))?.leadsTo
  assert.deepEqual([then(/Idempotent-Replayed/), then(/^409/), then(/^422/), then(/5xx/)], ['success', 'retry', 'permanent_failure', 'retry'])
})

test('the alerts of the retry contract have its thresholds and severities, and every alert its place in the runbook', () => {
  const told = (name: string) => {
    const { severity, threshold, unit, windowMs } = contract.alerts.find((alert) => alert.name === name) ?? assert.fail(`${name} is missing`)
    return [severity, threshold, unit, windowMs]
  }
  assert.deepEqual(told('PosthouseExhaustionRateHigh'), ['high', 0.05, 'share', 5 * m])
  assert.deepEqual(told('PosthouseDeadLetterDepthHigh'), ['high', 1_000, 'records', 0])
  assert.deepEqual(told('PosthouseDeadLettersGrowing').slice(0, 3), ['critical', 100, 'per minute'])
  for (const { name, runbook } of contract.alerts) {
    const [path = '', anchor = ''] = runbook.split('#')
    assert.ok(readMarkdown(readFileSync(join(projectRoot, path), 'utf8')).anchors.includes(anchor), `${name}: ${runbook} is missing`)
  }
})

test('it does not say that 410 ends subscriptions where the policy makes something else of it', () => {
  const radius = (policy: Policy) => sampleContract({ policy }).context.blastRadius.join(' ')
  assert.match(radius(defaultPolicy), /only 410 ends/)
  assert.doesNotMatch(radius({ ...defaultPolicy, statusClasses: new Map([[410, 'retriable']]) }), /410/)
})

test('what hand-offs name is there: fields in the schemas, metrics in the services, documents', () => {
  const fields = new Set(readdirSync(join(projectRoot, 'schemas')).filter((file) => file.endsWith('.avsc')).flatMap((file) =>
    fieldsOf(JSON.parse(readFileSync(join(projectRoot, 'schemas', file), 'utf8')) as Schema)))
  const sources = ['services', 'shared/kafka-service'].flatMap((folder) => readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts')).map((file) => readFileSync(join(projectRoot, folder, file), 'utf8'))).join('\n')
  for (const { to, fields: named, metrics, documents } of contract.handOffs) {
    assert.deepEqual(named.filter((field) => !fields.has(field)), [], to)
    assert.deepEqual(metrics.filter((metric) => !sources.includes(`'${metric.replace(/_count$/, '')}'`)), [], to)
    assert.deepEqual(documents.filter((path) => !existsSync(join(projectRoot, path))), [], to)
  }
})

type Schema = { readonly name?: string; readonly fields?: readonly { readonly name: string; readonly type: unknown }[]; readonly type?: unknown; readonly items?: unknown }

/** `Record.field` of a schema and of the records within. */
function fieldsOf(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(fieldsOf)
  if (typeof schema !== 'object' || schema === null) return []
  const { name, fields, type, items } = schema as Schema
  return [...(fields ?? []).flatMap((field) => [`${name}.${field.name}`, ...fieldsOf(field.type)]), ...fieldsOf(items), ...fieldsOf(type)]
}

test('spans and shares are written as people read them', () => {
  assert.deepEqual([0, 5, 1_500, 30_000, 36 * m, 90 * m, 82.6 * h, 14 * d].map(inWords), ['0', '5 ms', '1.5 s', '30 s', '36 min', '1.5 h', '82.6 h', '14 d'])
  assert.deepEqual([0, 0.5, 0.996_093_75, 0.999_999, 0.999_999_999_9, 1].map(inPercent), ['0 %', '50 %', '99.6 %', '99.9999 %', 'over 99.999999 %', 'over 99.999999 %'])
})
