import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { axis, plot } from '../../cli/simulation-plot.ts'
import { wilsonInterval } from '../../shared/simulation/measure.ts'
import { expectCli } from './run-cli.ts'

type Printed = {
  readonly formula: { readonly share: number } | null
  readonly policy: { readonly maxAttempts: number; readonly scheduleMs: readonly number[]; readonly timeoutMs: number; readonly statusClasses: readonly unknown[] }
  readonly runs: readonly {
    readonly jitter: string; readonly isOwn: boolean; readonly delivered: number; readonly deliveredShare: number
    readonly requests: { readonly peaksPerSecond: readonly number[]; readonly peakPerSecond: number }
  }[]
}

/** No Kafka is there. */
const env = { KAFKA_BROKERS: '127.0.0.1:1' }
const simulate = (args: readonly string[], code = 0) => expectCli(code, ['policy', 'simulate', ...args], { env })
const simulated = async (args: readonly string[]): Promise<Printed> => (await simulate([...args, '-o', 'json'])).json() as Printed

test('what the command prints agrees with the formula, for 10,000 deliveries and every jitter', async () => {
  const { formula, runs } = await simulated(['--availability', '0.5'])
  assert.deepEqual(runs.map(({ jitter, isOwn }) => [jitter, isOwn]), [['none', false], ['additive', true], ['full', false], ['equal', false], ['decorrelated', false]])
  assert.equal(formula?.share, 0.996_093_75)
  for (const { delivered } of runs) {
    const [low, high] = wilsonInterval(delivered, 10_000, 3.29)
    assert.ok(low <= 0.996_093_75 && 0.996_093_75 <= high, `${delivered} delivered`)
  }
})

test('the same arguments give the same text, with a table and a plot of every jitter', async () => {
  const args = ['--outage', '6h', '--deliveries', '500', '--seed', '7']
  const [one, two, other] = await Promise.all([simulate(args), simulate(args), simulate([...args.slice(0, -1), '8'])])
  assert.equal(one.stdout, two.stdout)
  assert.notEqual(one.stdout, other.stdout)
  for (const jitter of ['none', 'additive', 'full', 'equal', 'decorrelated']) {
    assert.equal(one.stdout.split('\n').filter((line) => line.startsWith(jitter)).length, 2, `${jitter} has a row in the table and one in the plot`)
  }
  assert.match(one.stdout, /^additive \*/m)
})

test('a policy comes as JSON, as a file or as options, and must be sound', async (t) => {
  const file = join(tmpdir(), `posthouse-policy-${process.pid}.json`)
  await writeFile(file, '{"schedule": ["10s", "20s"], "timeout": "5s", "statusClasses": {"404": "permanent"}}')
  t.after(() => rm(file, { force: true }))
  const few = ['--deliveries', '10', '--outage', '1h']
  const [fromFile, fromJson, changed] = await Promise.all([
    simulated([...few, '--policy', file]), simulated([...few, '--policy', '{"schedule": ["2h"]}']), simulated([...few, '--policy', file, '--schedule', '90m']),
  ])
  assert.deepEqual([fromFile.policy.scheduleMs, fromFile.policy.timeoutMs, fromFile.policy.statusClasses], [[10_000, 20_000], 5_000, [{ status: 404, class: 'permanent' }]])
  assert.deepEqual([fromFile.runs[1]?.delivered, fromJson.runs[1]?.delivered], [0, 10])
  assert.deepEqual([changed.policy.scheduleMs, changed.policy.timeoutMs], [[5_400_000], 5_000])
  assert.equal(fromFile.formula, null, 'an outage is not independent')

  for (const [policy, expected] of [['{"schedule": ["13d"]}', /more than 14d/], ['{"base": 5}', /not a policy/], ['{', /not JSON/], ['{"jitter": "none"}', /jitter/]] as const) {
    const { code, message } = (await simulate(['--policy', policy, '-o', 'json'], 2)).error()
    assert.equal(code, 'usage')
    assert.match(message, expected)
  }
  await simulate(['--availability', '1.5'], 2)
  await simulate(['--failure', '204'], 2)
})

test('rows of a plot have one logarithmic scale; whatever is there is seen', () => {
  const text = plot([{ label: 'a', peaks: [0, 1, 256], note: 'x' }, { label: 'bb', peaks: [16, 0, 0], note: 'y' }])
  assert.deepEqual(text.split('\n'), ['    │  █│', 'a   │ ▁█│ x', '    │▁  │', 'bb  │█  │ y'])
  assert.equal(axis(2, 20, ['0', '+1 h', '+2 h']), '     0       +1 h    +2 h')
  assert.doesNotThrow(() => plot([{ label: 'a', peaks: [0, 1], note: '' }]))
})
