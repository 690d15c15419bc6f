import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Account } from '../../deploy/sample/account.ts'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { spawnLeashed, type Leashed } from '../../deploy/dev/leash.ts'
import { findLocalKafka } from '../../deploy/dev/run-file.ts'
import { kafkaForTests, withAdmin } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip, brokers } = kafkaForTests()
const topicPrefix = 'posthouse-sample-'

type Run = { readonly child: Leashed; readonly folder: string; readonly out: string[]; readonly err: string[] }

/** `own`: with a Kafka of its own, as `npm start` has; else on the tests' one, which is there already. */
async function start(t: TestContext, args: readonly string[], { own = false } = {}): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-sample-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const out: string[] = []
  const err: string[] = []
  const child = await spawnLeashed({
    command: process.execPath, args: [join(projectRoot, 'deploy/sample/main.ts'), '--folder', folder, ...args], graceMs: 10_000,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, npm_lifecycle_event: undefined, KAFKA_BROKERS: own ? undefined : brokers.join(',') },
    onLine: (line, stream) => (stream === 'stdout' ? out : err).push(line),
  })
  t.after(() => child.terminate(20_000))
  return { child, folder, out, err }
}

async function runOnce(t: TestContext, args: readonly string[], options?: { own: boolean }): Promise<{ code: number | null; account: Account; err: string }> {
  const { child, out, err } = await start(t, ['--once', '--output', 'json', ...args], options)
  const { code } = await child.ended
  assert.equal(out.length, 1, `nothing but JSON on standard output: ${out.join('\n')}\n${err.join('\n')}`)
  return { code, account: JSON.parse(out[0]!) as Account, err: err.join('\n') }
}

/** Those of `pids` that live, and all that have the folder in their arguments. */
function processesOf(folder: string, pids: readonly number[]): number[] {
  return readdirSync('/proc').map(Number).filter((pid) => {
    try {
      return pids.includes(pid) ? !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')) : readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

test('every delivery is accounted for: healthy and flaky delivered, dead ones dead, each signature right', { skip }, async (t) => {
  const { code, account, err } = await runOnce(t, ['--events', '40', '--endpoints', 'healthy,flaky,dead'], { own: true })
  const { endpoints, p50Ms, p99Ms, repeated: _, ...rest } = account
  assert.deepEqual(rest, { events: 40, subscriptions: 3, expected: 120, delivered: 80, deadLettered: 40, waiting: 0, lost: 0, attempts: rest.attempts, signatureFailures: 0 }, err)
  assert.equal(code, 0, err)
  assert.ok(p50Ms !== null && p99Ms !== null && p50Ms <= p99Ms)
  const { healthy, flaky, dead } = endpoints
  assert.deepEqual([healthy?.delivered, flaky?.delivered, dead?.deadLettered, dead?.p50Ms], [40, 40, 40, null])
  assert.ok(healthy!.attempts >= 40 && flaky!.attempts >= 120 && dead!.attempts >= 120, JSON.stringify(endpoints))
  assert.ok(flaky!.p50Ms! >= 3_000, 'two waits of the schedule')
  assert.match(err, /The account closes/)
})

test('the account can fail: with a wrong secret, and with one delivery hidden', { skip }, async (t) => {
  const [secret, log] = await Promise.all(['secret', 'log'].map((sabotage) =>
    runOnce(t, ['--events', '5', '--rate', '1000', '--endpoints', 'healthy', '--sabotage', sabotage])))
  assert.equal(secret!.code, 1)
  assert.equal(secret!.account.signatureFailures, 5, secret!.err)
  assert.equal(secret!.account.delivered, 0)
  assert.equal(log!.code, 1)
  assert.deepEqual([log!.account.lost, log!.account.waiting, log!.account.delivered], [1, 0, 4], log!.err)
  assert.match(log!.err, /DOES NOT CLOSE/)
  const left = await withAdmin(async (admin) => (await admin.listTopics()).filter((topic) => topic.startsWith(topicPrefix)))
  assert.deepEqual(left, [], 'on a Kafka that was there already its topics are deleted')
})

test('it stays up and says what to do; nothing is left of it after kill -9', { skip }, async (t) => {
  const { child, folder, out, err } = await start(t, ['--events', '3', '--endpoints', 'healthy'], { own: true })
  await until(() => out.some((line) => line.includes('It stays up')) || child.hasEnded(), { deadlineMs: 90_000, message: () => `it to stay up: ${[...out, ...err].join('\n')}` })
  const text = out.join('\n')
  for (const hint of [/posthouse events send/, /posthouse subscriptions create --url http/, /posthouse listen/, /http:\/\/127\.0\.0\.1:\d+\/metrics/]) assert.match(text, hint)
  const run = findLocalKafka(join(folder, 'run.json'))
  assert.equal(run?.environment?.['POSTHOUSE_ALLOW_HTTP'], 'true')
  const url = /http:\S+\/metrics/.exec(text)![0]
  assert.equal((await fetch(url)).status, 200)
  const services = readdirSync('/proc').map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/status`, 'utf8').includes(`PPid:\t${child.pid}\n`)
    } catch {
      return false
    }
  })
  assert.ok(services.length >= 5, `Kafka, the receiver and three services: ${services.join(' ')}`)
  child.signal('SIGKILL')
  await until(() => processesOf(folder, services).length === 0, { deadlineMs: 40_000, intervalMs: 100, message: () => `processes ${processesOf(folder, services).join(', ')} to end` })
})

test('a start that is called off ends everything, and says 130', { skip }, async (t) => {
  const { child, folder, out } = await start(t, ['--events', '3'])
  await until(() => out.some((line) => line.startsWith('Kafka:')), { deadlineMs: 60_000 })
  child.signal('SIGINT')
  assert.equal((await child.ended).code, 130)
  assert.deepEqual(processesOf(folder, []), [])
})
