import assert from 'node:assert/strict'
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { corpusSize, eventOf } from '../../deploy/sample/corpus.ts'
import { sampleEnvironment } from '../../deploy/sample/environment.ts'
import { readMetrics, sumOf } from '../../deploy/sample/metrics-text.ts'
import { parseOptions } from '../../deploy/sample/options.ts'
import { takeFolder } from '../../deploy/sample/owner.ts'
import { readProgress } from '../../deploy/sample/progress.ts'
import { openReceivedLog } from '../../deploy/sample/received-log.ts'
import { toLine, type Arrival } from '../../deploy/sample/received-line.ts'
import { createScreen } from '../../deploy/sample/screen.ts'
import { createSettling, type Look } from '../../deploy/sample/settling.ts'
import { troubleOf } from '../../deploy/sample/trouble.ts'
import { leavesAfterMs } from '../../deploy/sample/workload.ts'
import { readConfig } from '../../shared/config/config.ts'
import { checkEventType, maxBodyBytes } from '../../shared/domain/event.ts'

test('all 329 payloads are events of their own types', () => {
  assert.equal(corpusSize, 329)
  const types = new Set<string>()
  for (let n = 1; n <= corpusSize; n++) {
    const { id, type, body } = eventOf(n, 1_700_000_000_999)
    const event = JSON.parse(body.toString()) as { id: string; type: string; created: number; data: { action?: string } }
    assert.deepEqual([event.id, event.type, event.created], [id, type, 1_700_000_000])
    assert.equal(checkEventType(type), null)
    assert.ok(body.length < maxBodyBytes)
    if (typeof event.data.action === 'string') assert.ok(type.endsWith(`.${event.data.action}`), type)
    types.add(type)
  }
  assert.ok(types.has('github.push') && types.has('github.issues.opened') && types.size > 100, String(types.size))
})

test('after the corpus it begins anew, with ids of their own', () => {
  const [first, again] = [eventOf(1, 0), eventOf(corpusSize + 1, 0)]
  assert.equal(again.type, first.type)
  assert.deepEqual([first.id, again.id], ['evt_1', 'evt_330'])
  assert.notEqual(again.sha256, first.sha256)
})

test('events leave slowly first, and then at their rate', () => {
  const at = Array.from({ length: 1_000 }, (_, n) => leavesAfterMs(n, 50))
  assert.equal(at[0], 0)
  for (let n = 1; n < at.length; n++) assert.ok(at[n]! > at[n - 1]!, String(n))
  assert.ok(at[1]! > 200, 'the second one waits longer than a fiftieth of a second')
  assert.ok(Math.abs(at[999]! - at[949]! - 1_000) < 1e-6, '50 in the last second')
})

test('options are read, and what cannot be is said', () => {
  const options = (...args: string[]) => {
    const parsed = parseOptions(args)
    assert.ok('options' in parsed, JSON.stringify(parsed))
    return parsed.options
  }
  assert.deepEqual(options(), { isOnce: false, isJson: false, endpoints: ['healthy', 'flaky', 'slow', 'dead'], events: 329, rate: options().rate, kill: null, sabotage: null, folder: null })
  const all = options('--once', '--output', 'json', '--endpoints', 'dead,healthy,dead', '--events', '4000', '--kill', 'retry-tier', '--sabotage', 'log')
  assert.deepEqual([all.isOnce, all.isJson, all.endpoints, all.events, all.kill, all.sabotage], [true, true, ['healthy', 'dead'], 4_000, 'retry-tier', 'log'])
  for (const wrong of [['--endpoints', 'fast'], ['--events', '0'], ['--events', '1e3'], ['--kill', 'kafka'], ['--output', 'xml'], ['--onec'], ['once']]) {
    assert.ok('problem' in parseOptions(wrong), wrong.join(' '))
  }
})

test('the settings of the sample are a configuration that posthouse takes', () => {
  const read = readConfig({ ...sampleEnvironment({ topicPrefix: 'webhooks.', groupPrefix: 'posthouse' }), KAFKA_BROKERS: '127.0.0.1:9092' })
  assert.ok('config' in read, JSON.stringify(read))
  assert.ok(read.config.policy.maxAttempts >= 3, 'the flaky endpoint needs three')
  assert.ok(read.config.policy.scheduleMs.every((waitMs) => waitMs <= 10_000))
})

test('metrics are read from their text', () => {
  const samples = readMetrics('# HELP a b\na_total{tier="1s",x="a\\"b"} 3\na_total{tier="soon"} 4 1700000000\nb 1.5e3\nc NaN\n\n')
  assert.equal(sumOf(samples, 'a_total'), 7)
  assert.equal(sumOf(samples, 'a_total', { tier: 'soon' }), 4)
  assert.equal(sumOf(samples, 'b'), 1_500)
  assert.equal(sumOf(samples, 'nothing'), 0)
})

test('idle means that every service is at work and none has anything left', async () => {
  const isIdle = async (texts: Record<string, string | null>, waiting = ''): Promise<boolean> => {
    const metricsOf = async (name: string) => (texts[name] == null ? null : readMetrics(texts[name]))
    return (await readProgress({ metricsOf, isReady: async (name) => name !== waiting })).isIdle
  }
  const idle = { 'router': 'posthouse_window_records 0', 'delivery': 'posthouse_consumer_lag_records 0', 'retry-tier': 'posthouse_retry_depth_records{tier="soon"} 0' }
  assert.ok(await isIdle(idle))
  assert.ok(!await isIdle({ ...idle, delivery: null }))
  assert.ok(!await isIdle(idle, 'retry-tier'), 'one that was killed and has joined nothing yet has nothing left either')
  assert.ok(!await isIdle({ ...idle, 'retry-tier': 'posthouse_retry_depth_records{tier="soon"} 0\nposthouse_retry_depth_records{tier="5s"} 1' }))
  assert.ok(!await isIdle({ ...idle, router: 'posthouse_consumer_lag_records 2' }))
})

test('a run is over when nothing is missing, when nothing moves any more, or when nothing comes for long', () => {
  const run = (looks: readonly Partial<Look>[]): string[] => {
    const settle = createSettling()
    return looks.map((one) => settle({ now: 0, isSent: true, missing: 1, seen: 1, isIdle: true, ...one }))
  }
  assert.deepEqual(run([{ isSent: false, missing: 0 }, { missing: 0 }]), ['going-on', 'settled'])
  // Quiet only after some time without anything moving and with nothing in hand.
  assert.deepEqual(run([{}, { now: 4_000 }, { now: 4_900, seen: 2 }, { now: 9_000, seen: 2 }, { now: 9_901, seen: 2 }]), ['going-on', 'going-on', 'going-on', 'going-on', 'quiet'])
  assert.deepEqual(run([{ isIdle: false }, { now: 60_000, isIdle: false }, { now: 64_000 }, { now: 65_001 }]), ['going-on', 'going-on', 'going-on', 'quiet'])
  // Something is in hand for ever: attempts go on, and nothing settles.
  assert.deepEqual(run([{ isIdle: false }, { now: 89_000, seen: 50, isIdle: false }, { now: 90_001, seen: 60, isIdle: false }]), ['going-on', 'going-on', 'stuck'])
  assert.deepEqual(run([{ missing: 9, isIdle: false }, { now: 80_000, missing: 8, seen: 2, isIdle: false }, { now: 160_000, missing: 8, seen: 3, isIdle: false }]).at(-1), 'going-on')
  assert.deepEqual(run([{ isSent: false }, { now: 500_000, isSent: false }, { now: 500_001 }]).at(-1), 'going-on')
})

test('the receiver\'s log is read as it grows, and half a line only when it is whole', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-log-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'received.jsonl')
  await writeFile(file, '')
  const seen: string[] = []
  const log = await openReceivedLog(file, ({ deliveryId }) => seen.push(deliveryId))
  t.after(log.close)
  const line = (deliveryId: string): string =>
    toLine({ endpoint: 'healthy', deliveryId, eventId: 'evt_ü', attempt: 1, receivedAt: 1, answeredAt: 2, isVerified: true, status: 200, sha256: '' } satisfies Arrival)
  assert.equal(await log.read(), 0)
  const bytes = Buffer.from(line('del_2'))
  const half = bytes.indexOf(0xbc)
  await appendFile(file, Buffer.concat([Buffer.from(line('del_1')), bytes.subarray(0, half)]))
  assert.equal(await log.read(), 1)
  await appendFile(file, bytes.subarray(half))
  assert.equal(await log.read(), 1)
  await appendFile(file, Array.from({ length: 3_000 }, (_, n) => line(`del_${n + 3}`)).join(''))
  assert.equal(await log.read(), 3_000)
  assert.deepEqual(seen, Array.from({ length: 3_002 }, (_, n) => `del_${n + 1}`))
})

test('on a terminal lines are rewritten in place, in a pipe they are not', () => {
  const screenOf = (isTTY: boolean) => {
    let text = ''
    const screen = createScreen({ isTTY, columns: 30, write: (part: string | Uint8Array) => { text += String(part); return true } })
    screen.show(['one', 'x'.repeat(50)])
    screen.say('said')
    screen.show([])
    return text
  }
  assert.equal(screenOf(false), 'said\n')
  const live = screenOf(true)
  assert.ok(live.includes(`one\n${'x'.repeat(29)}\n`), 'a line that would wrap is cut')
  assert.equal(live.split('\u001b[2A').length, 3, 'both lines were gone back over, twice')
})

test('a folder is one run\'s at a time, and taken over from one that was killed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-owner-'))
  t.after(() => rm(folder, { recursive: true }))
  const release = await takeFolder(folder)
  await assert.rejects(takeFolder(folder), new RegExp(`process ${process.pid}.*--folder`))
  await release()
  await writeFile(join(folder, 'owner.json'), JSON.stringify({ pid: process.pid, startTicks: '1' }))
  await (await takeFolder(folder))()
})

test('of what a service wrote only trouble is repeated, in a line', () => {
  assert.equal(troubleOf('{"level":"fatal","msg":"the service failed","error":{"message":"port 9401 is taken","stack":"..."}}'), 'the service failed: port 9401 is taken')
  assert.equal(troubleOf('{"level":"error","msg":"no partitions"}'), 'no partitions')
  assert.equal(troubleOf('{"level":"info","msg":"starting"}'), null)
  assert.equal(troubleOf('  KAFKA_BROKERS is not set'), 'KAFKA_BROKERS is not set')
  assert.equal(troubleOf(''), null)
  assert.equal(troubleOf('{ cut'), '{ cut')
})
