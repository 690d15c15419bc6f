import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { spawnLeashed } from '../../deploy/dev/leash.ts'
import type { AlertsShown } from '../../deploy/prometheus/show-alerts.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { skipWithoutPrometheus } from './promtool.ts'

const { brokers, skip: skipWithoutKafka } = kafkaForTests()

test('a real Prometheus scrapes the services while deliveries die', { skip: skipWithoutKafka || skipWithoutPrometheus }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-prometheus-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const output: string[] = []
  const said: string[] = []
  const script = await spawnLeashed({
    command: process.execPath, args: [join(projectRoot, 'deploy/prometheus/show-alerts.ts'), '--output', 'json', '--folder', folder],
    cwd: projectRoot, env: { ...process.env, NODE_TEST_CONTEXT: undefined, KAFKA_BROKERS: brokers.join(',') }, graceMs: 5_000,
    onLine: (line, stream) => void (stream === 'stdout' ? output : said).push(line),
  })
  t.after(() => script.terminate(20_000))
  const { code } = await script.ended
  for (const line of said) t.diagnostic(line)
  assert.equal(code, 0)
  const shown = JSON.parse(output.join('\n')) as AlertsShown
  const firedNamed = (name: string) => shown.fired.find((one) => one.name === name)

  await t.test('nothing fires while all is well, and later only what is meant to', () => {
    assert.deepEqual(shown.before, [])
    const meant = ['PosthouseExhaustionRateHigh', 'PosthouseDeadLettersGrowing', ...(shown.hasAdmin ? ['PosthouseDeadLetterDepthHigh'] : [])]
    assert.deepEqual(shown.fired.map(({ name }) => name).sort(), meant.sort())
  })
  await t.test('the exhaustion rate and the growth of dead letters fire, with what they have seen', () => {
    const exhaustion = firedNamed('PosthouseExhaustionRateHigh')
    assert.ok(exhaustion && exhaustion.value > 0.05 && exhaustion.value < 1)
    assert.match(exhaustion.annotations['description'] ?? '', /^Exhausted deliveries as a share of all that were settled: [\d.]+%; fires above 5 % over 5m\.$/)
    assert.equal(exhaustion.annotations['runbook_url'], 'docs/runbook.md#posthouseexhaustionratehigh')
    const growth = firedNamed('PosthouseDeadLettersGrowing')
    assert.ok(growth && growth.value > 100)
    assert.equal(growth.labels['severity'], 'critical')
  })
  await t.test('every attempt tells how long its delivery had waited for it', () => {
    // Some may be in flight when they are looked at.
    assert.ok(shown.attempts && shown.attempts >= 3 * 1_200)
    assert.ok(shown.attemptsBegun && shown.attemptsBegun >= shown.attempts)
  })
  await t.test('the depth of dead letters fires', { skip: shown.hasAdmin ? false : 'needs the admin service' }, () => {
    const depth = firedNamed('PosthouseDeadLetterDepthHigh')
    assert.ok(depth && depth.value > 1_000)
  })
})
