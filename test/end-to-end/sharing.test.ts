import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { kafkaForTests } from '../support/kafka.ts'
import type { ServiceProcess } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { readRequest, tallyOf } from './received.ts'

const { skip } = kafkaForTests()
const endpoints = 12

test('processes that join and leave in the middle of a load lose nothing and repeat nothing', { skip }, async (t) => {
  const pipeline = await openPipeline(t, { partitions: 6, tierPartitions: 2, tiersMs: [500, 1_000], scheduleMs: [300, 600, 1_000] })
  const numberOf = (eventId: string): number => Number(eventId.split('_')[1])
  let slowMs = 0
  // One in five fails at first, so that something always waits in the tiers.
  const receiver = await startReceiver(t, async (request) => {
    const { eventId, attempt } = readRequest(request)
    const number = numberOf(eventId)
    await delay(slowMs > 0 && number % 7 === 0 ? slowMs : 5 + number % 26)
    return { status: attempt === 1 && number % 5 === 0 ? 500 : 200 }
  })
  const { routers, deliveries, retryTiers } = await pipeline.startAll({ delivery: 2 })
  await Promise.all(Array.from({ length: endpoints }, (_, n) => pipeline.subscribe(`${receiver.url}/${n}`, { eventTypes: [`order.${n}`] })))
  const requestsOf = (name: string) => receiver.requests.filter(({ body }) => body.includes(`"${name}_`))
  const ownedBy = (process: ServiceProcess) => pipeline.metric([process], 'posthouse_consumer_owned_partitions')
  const sentBy = (process: ServiceProcess) => pipeline.metric([process], 'posthouse_attempts_total')

  /** Runs a load around `change`, and then looks that each of its events came once for each attempt it needed. */
  async function aroundChange(name: string, change: (more: (count: number) => Promise<void>) => Promise<void>): Promise<void> {
    const seen = (): number => tallyOf(requestsOf(name)).events.size
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
    t.diagnostic(`${name}: ${ids.length} events, ${requests.length} requests, ${tally.repeats} repeated`)
    assert.deepEqual(ids.filter((id) => !tally.events.has(id)), [], `${name}: events that never came`)
    assert.deepEqual(tally.renamed, [])
    assert.equal(tally.repeats, 0, `${name}: requests that were repeated`)
    assert.equal(requests.length, ids.length + ids.filter((id) => numberOf(id) % 5 === 0).length, `${name}: every failure was tried again`)
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
