import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { startLocalKafka, type LocalKafka } from '../../deploy/dev/kafka/kafka.ts'
import { quickRestartProperties } from '../../deploy/dev/kafka/server-properties.ts'
import { requireJava } from '../../deploy/dev/kafka/tools.ts'
import type { Cleanup } from '../support/kafka.ts'
import type { ServiceProcess } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { mostRepeatedMs, oldestRepeatMs, readRequest, tallyOf } from './received.ts'

const skip = await requireJava().then(() => false as const, (error: Error) => error.message)

const awayMs = 60_000
/** An attempt needs a table read less than a second ago; this is for what was begun then, on a busy machine. */
const lastAttemptMs = 5_000

/** Asks a probe of each process again and again; every answer that differs from the one before is kept. */
function watchProbe(t: Cleanup, processes: Readonly<Record<string, ServiceProcess>>, path: string) {
  const answers = new Map<string, number[]>(Object.keys(processes).map((name) => [name, []]))
  let isStopped = false
  t.after(() => { isStopped = true })
  const ask = async (name: string, url: string): Promise<void> => {
    const seen = answers.get(name)!
    while (!isStopped) {
      // 0: it did not answer in time, which for a probe is as bad as a wrong answer.
      const status = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(10_000) }).then((response) => response.status, () => 0)
      if (!isStopped && seen.at(-1) !== status) seen.push(status)
      await delay(100)
    }
  }
  for (const [name, { url }] of Object.entries(processes)) void ask(name, url)
  return answers
}

test('the broker killed in the middle of a load, back at once, then away for a minute: nothing is lost', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-broker-away-'))
  const startBroker = (): Promise<LocalKafka> => startLocalKafka({ folder, properties: quickRestartProperties })
  let kafka = await startBroker()
  const pipeline = await openPipeline(t, { brokers: [kafka.brokers], partitions: 4, tierPartitions: 2, scheduleMs: [300, 600, 1_000] })
  t.after(async () => {
    await kafka.kill()
    await rm(folder, { recursive: true, force: true })
  })
  const numberOf = (eventId: string): number => Number(eventId.split('_')[1])
  const receiver = await startReceiver(t, async (request) => {
    const { eventId, attempt } = readRequest(request)
    await delay(5 + numberOf(eventId) % 26)
    return { status: attempt === 1 && numberOf(eventId) % 4 === 0 ? 500 : 200 }
  })
  const { routers: [router], deliveries: [delivery], retryTiers: [retryTier] } = await pipeline.startAll()
  const services = { router: router!, delivery: delivery!, retryTier: retryTier! }
  const livez = watchProbe(t, services, '/livez')
  const readyz = watchProbe(t, services, '/readyz')
  const isEveryLast = (status: number): boolean => [...readyz.values()].every((seen) => seen.at(-1) === status)
  await pipeline.subscribe(receiver.url)

  async function aroundOutage(name: string, outage: () => Promise<void>): Promise<void> {
    const seen = (): number => tallyOf(receiver.requests.filter(({ body }) => body.includes(`"${name}_`))).events.size
    const load = startLoad(t, pipeline, { name, received: seen })
    await load.more(400)
    await until(() => seen() > 100, { deadlineMs: patienceMs })
    const killedAt = Date.now()
    await kafka.kill()
    await outage()
    kafka = await startBroker()
    const backAt = performance.now()
    await load.more(200)
    const ids = await load.stop()
    await until(() => seen() >= ids.length, { deadlineMs: patienceMs, intervalMs: 200, message: () => `${ids.length} events to come (${seen()} have)` })
    await pipeline.untilQuiet()
    const requests = receiver.requests.filter(({ body }) => body.includes(`"${name}_`))
    const tally = tallyOf(requests)
    t.diagnostic(`${name}: ${ids.length} events, ${requests.length} requests, ${tally.repeats} repeated, ${Math.round(performance.now() - backAt)} ms after the broker served again`)
    assert.deepEqual(ids.filter((id) => !tally.events.has(id)), [], 'events that never came')
    assert.deepEqual(tally.renamed, [])
    // All processes lived on and know what they have settled; but what was in flight may be read again while its end is being written.
    const oldestMs = oldestRepeatMs(tally, killedAt)
    assert.ok(oldestMs <= mostRepeatedMs, `a request ${oldestMs} ms before the outage was made again`)
    await until(() => isEveryLast(200), { deadlineMs: patienceMs, message: () => `all to be ready again: ${JSON.stringify([...readyz])}` })
  }

  await aroundOutage('restart', async () => undefined)

  await aroundOutage('away', async () => {
    const downAt = Date.now()
    // The minute itself is what is tested.
    await delay(awayMs)
    assert.ok(isEveryLast(503), `none is ready without a broker: ${JSON.stringify([...readyz])}`)
    assert.equal(receiver.requests.filter(({ receivedAt }) => receivedAt > downAt + lastAttemptMs).length, 0, 'attempts by subscriptions that may have changed')
  })

  assert.deepEqual([...livez.values()], [[200], [200], [200]])
  t.diagnostic(`readyz: ${[...readyz].map(([name, seen]) => `${name} ${seen.join(' ')}`).join(', ')}`)
  assert.equal(await pipeline.count(pipeline.topics.dlq), 0)
  const ends = await Promise.all(Object.values(services).map((process) => process.terminate()))
  assert.deepEqual(ends.map(({ code }) => code), [0, 0, 0])
})
