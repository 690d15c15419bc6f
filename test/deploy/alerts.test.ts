import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { prometheusRules } from '../../deploy/prometheus/alerts.ts'
import { rulesFile } from '../../deploy/prometheus/rules-file.ts'
import { alertRules, describeAlertCondition, lateAfterSeconds } from '../../shared/domain/alert-rules.ts'
import { latenessSecondsBuckets, waitingSecondsBuckets } from '../../shared/metrics/buckets.ts'
import { alertCases, healthy, steps, type AlertCase } from './alert-cases.ts'
import { knownSeries, seriesIn } from './exported-series.ts'
import { promtool, skipWithoutPrometheus } from './promtool.ts'

const committed = join(projectRoot, 'deploy/prometheus/posthouse.rules.yml')

test('the rules file is what the table of alerts makes', () => {
  assert.equal(readFileSync(committed, 'utf8'), rulesFile(), 'run: node deploy/prometheus/rules-file.ts > deploy/prometheus/posthouse.rules.yml')
})

test('links lead to where one says', () => {
  const [rule] = prometheusRules('https://wiki.example/runbook')
  assert.equal(rule?.annotations['runbook_url'], 'https://wiki.example/runbook#posthouseexhaustionratehigh')
})

test('the runbook has a section for each alert, with its severity and its condition', () => {
  const sections = readFileSync(join(projectRoot, 'docs/runbook.md'), 'utf8').split(/^### /m).slice(1)
  const written = sections.map((section) => section.split('\n')[0]).filter((title) => title?.startsWith('Posthouse'))
  assert.deepEqual(written, alertRules.map(({ name }) => name))
  for (const rule of alertRules) {
    const section = sections.find((one) => one.startsWith(`${rule.name}\n`)) ?? ''
    const first = `${rule.severity}; fires ${describeAlertCondition(rule)}`
    assert.ok(section.includes(first), `the section of ${rule.name} must say: ${first}`)
    for (const part of ['**Look at**', '**Do**']) assert.ok(section.includes(part), `the section of ${rule.name} has no ${part}`)
  }
})

test('each alert is made of series that a service exports', () => {
  for (const { alert, expr } of prometheusRules()) {
    const named = seriesIn(expr)
    assert.ok(named.length > 0 || expr.startsWith('up{'), alert)
    assert.deepEqual(named.filter((name) => !knownSeries.has(name)), [], alert)
  }
})

test('what counts as late is an edge of the histogram it is read from', () => {
  assert.ok(latenessSecondsBuckets.includes(lateAfterSeconds.attempt) && latenessSecondsBuckets.includes(lateAfterSeconds.retry))
  // As the router makes its own.
  assert.ok(waitingSecondsBuckets([10_000, 60_000, 300_000], 3_600_000).includes(lateAfterSeconds.routing))
})

test('every alert has a case in which it fires and one in which it must not', () => {
  for (const { name } of alertRules) {
    const cases = alertCases.filter(({ alert }) => alert === name)
    assert.ok(cases.some(({ expected }) => expected.length > 0) && cases.some(({ expected }) => expected.length === 0), name)
  }
})

test('promtool finds nothing wrong with the rules', { skip: skipWithoutPrometheus }, () => {
  const { status, output } = promtool(['check', 'rules', '--lint=all', '--lint-fatal', committed])
  assert.equal(status, 0, output)
})

test('alerts fire when they should, and only then', { skip: skipWithoutPrometheus }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-alerts-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const run = (name: string, one: Pick<AlertCase, 'series' | 'expected'>): void => {
    const file = join(folder, `${name.replaceAll(/\W/g, '-')}.json`)
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify(testFileOf(one)))
    const { status, output } = promtool(['test', 'rules', file])
    assert.equal(status, 0, output)
  }
  await t.test('nothing fires while all is well', () => run('healthy', { series: {}, expected: [] }))
  for (const one of alertCases) {
    const name = `${one.alert} ${one.expected.length === 0 ? 'does not fire' : 'fires'}: ${one.what}`
    await t.test(name, () => run(name, one))
  }
})

function testFileOf({ series, expected }: Pick<AlertCase, 'series' | 'expected'>): object {
  const values = Object.entries({ ...healthy, ...series }).filter(([, text]) => text !== null)
  const severityOf = (alert: string): string => alertRules.find(({ name }) => name === alert)?.severity ?? ''
  return {
    rule_files: [committed], evaluation_interval: '1m',
    tests: [{
      interval: '1m',
      input_series: values.map(([name, text]) => ({ series: name, values: text })),
      promql_expr_test: [{
        // The value only says that it is there.
        eval_time: `${steps}m`, expr: '0 * ALERTS{alertstate="firing"}',
        exp_samples: expected.map(([alertname, labels]) => ({
          value: 0, labels: formatLabels({ alertname, alertstate: 'firing', severity: severityOf(alertname), ...labels }),
        })),
      }],
    }],
  }
}

const formatLabels = (labels: Readonly<Record<string, string>>): string =>
  `{${Object.entries(labels).map(([name, value]) => `${name}="${value}"`).join(', ')}}`
