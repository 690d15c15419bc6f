import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { kafkaForTests } from '../support/kafka.ts'
import type { ServiceProcess } from '../support/process.ts'
import { startReceiver, type ReceivedRequest } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { readRequest, tallyOf } from './received.ts'

const { skip } = kafkaForTests()
const endpoints = 12
/** A machine on which this process never waits so long for its turn keeps up. */
const keepsUpMs = 40
/** Between sending a request and our seeing it, on a machine that stalls. */
const inFlightMs = 2_000

test('processes that join and leave in the middle of a load lose nothing and repeat nothing', { skip }, async (t) => {
  const pipeline = await openPipeline(t, { partitions: 6, tierPartitions: 2, tiersMs: [500, 1_000], scheduleMs: [300, 600, 1_000] })
  const numberOf = (eventId: string): number => Number(eventId.split('_')[1])
  let slowMs = 0
  const answeredAt = new WeakMap<ReceivedRequest, number>()
  const stalls = monitorEventLoopDelay({ resolution: 5 })
  stalls.enable()
  // One in five fails at first, so that something always waits in the tiers.
  const receiver = await startReceiver(t, async (request) => {
    const { eventId, attempt } = readRequest(request)
    const number = numberOf(eventId)
    await delay(slowMs > 0 && number % 7 === 0 ? slowMs : 5 + number % 26)
    answeredAt.set(request, Date.now())
    return { status: attempt === 1 && number % 5 === 0 ? 500 : 200 }
  })
  const { routers, deliveries, retryTiers } = await pipeline.startAll({ delivery: 2 })
  await Promise.all(Array.from({ length: endpoints }, (_, n) => pipeline.subscribe(`${receiver.url}/${n}`, { eventTypes: [`order.${n}`] })))
  const requestsOf = (name: string) => receiver.requests.filter(({ body }) => body.includes(`"${name}_`))
  const ownedBy = (process: ServiceProcess) => pipeline.metric([process], 'posthouse_consumer_owned_partitions')
  const sentBy = (process: ServiceProcess) => pipeline.metric([process], 'posthouse_attempts_total')

  /** Epoch ms, when a process was told that the group is joined anew: it waits 120 ms for what is in flight, and repeats what is not through then. */
  const joinsAt = (): number[] => deliveries.flatMap(({ lines }) => lines.flatMap(({ fields, text }) =>
    (text.includes('a rejoin is needed') ? [Date.parse(String(fields?.['time']))] : [])))

  /** Runs a load around `change`, and then looks that each of its events came once for each attempt it needed. */
  async function aroundChange(name: string, change: (more: (count: number) => Promise<void>) => Promise<void>): Promise<void> {
    const seen = (): number => tallyOf(requestsOf(name)).events.size
    stalls.reset()
    const load = startLoad(t, pipeline, { name, received: seen, typeOf: (number) => `order.${number % endpoints}` })
    await load.more(300)
    await until(() => seen() > 100, { deadlineMs: patienceMs })
    await change(load.more)
    await load.more(300)
    const ids = await load.stop()
    await until(() => seen() >= ids.length, { deadlineMs: patienceMs, intervalMs: 200, message: () => `${ids.length} events to come (${seen()} have)` })
    await pipeline.untilQuiet()
    const requests = requestsOf(name)
    const tally = tallyOf(requests)
    const stalledMs = stalls.max / 1e6
    t.diagnostic(`${name}: ${ids.length} events, ${requests.length} requests, ${tally.repeats} repeated; this process stalled for up to ${Math.round(stalledMs)} ms`)
    assert.deepEqual(ids.filter((id) => !tally.events.has(id)), [], `${name}: events that never came`)
    assert.deepEqual(tally.renamed, [])
    // Receivers answer within 30 ms, unless the whole machine has stalled: then what was in flight at a join may be repeated, and nothing else.
    if (stalledMs < keepsUpMs) assert.equal(tally.repeats, 0, `${name}: requests that were repeated`)
    for (const first of tally.repeated) {
      const answered = answeredAt.get(first) ?? Infinity
      assert.ok(joinsAt().some((at) => answered > at && first.receivedAt < at + inFlightMs), `${name}: a request that was in flight at no join was repeated`)
    }
    assert.equal(requests.length - tally.repeats, ids.length + ids.filter((id) => numberOf(id) % 5 === 0).length, `${name}: every failure was tried again`)
  }

  await aroundChange('share', async (more) => {
    await until(async () => (await Promise.all(deliveries.map(sentBy))).every((sent) => sent > 0), { deadlineMs: patienceMs })
    await more(100)
  })
  await aroundChange('join', async (more) => {
    const third = await pipeline.start('delivery')
    deliveries.push(third)
    await until(async () => await sentBy(third).catch(() => 0) > 0, { deadlineMs: patienceMs, intervalMs: 100 })
    await until(async () => (await Promise.all(deliveries.map(ownedBy))).every((owned) => owned === 2), { deadlineMs: patienceMs, intervalMs: 50 })
    await more(100)
  })
  // Answers within the drain, however slow, are waited for.
  slowMs = 1_500
  await aroundChange('leave', async (more) => {
    const ended = deliveries.shift()!.terminate()
    await more(100)
    assert.deepEqual(await ended, { code: 0, signal: null })
    await until(async () => (await Promise.all(deliveries.map(ownedBy))).every((owned) => owned === 3), { deadlineMs: patienceMs, intervalMs: 50 })
  })
  slowMs = 0
  await aroundChange('delivery', async () => {
    await Promise.all(deliveries.map((process) => process.terminate()))
    deliveries.splice(0, deliveries.length, await pipeline.start('delivery'))
  })
  await aroundChange('router', async () => {
    assert.deepEqual(await routers[0]!.terminate(), { code: 0, signal: null })
    routers[0] = await pipeline.start('router')
  })
  await aroundChange('retrytier', async (more) => {
    assert.deepEqual(await retryTiers[0]!.terminate(), { code: 0, signal: null })
    await more(40)
    retryTiers[0] = await pipeline.start('retry-tier')
  })
  assert.equal(await pipeline.count(pipeline.topics.dlq), 0)
  const ends = await Promise.all([...routers, ...deliveries, ...retryTiers].map((process) => process.terminate()))
  assert.deepEqual(ends.map(({ code }) => code), [0, 0, 0])
})
