import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { kafkaForTests } from '../support/kafka.ts'
import type { ServiceProcess } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'
import { openPipeline, patienceMs, type PipelineService } from './pipeline.ts'
import { mostRepeatedMs, oldestRepeatMs, readRequest, tallyOf } from './received.ts'

const { skip } = kafkaForTests()

const numberOf = (eventId: string): number => Number(eventId.split('_')[1])

test('each service killed with -9 in the middle of a load and started again: nothing is lost', { skip }, async (t) => {
  const pipeline = await openPipeline(t, { partitions: 4, tierPartitions: 2, tiersMs: [500, 1_000], scheduleMs: [300, 600, 1_000] })
  // One in four fails at first, so that something always waits in the tiers.
  const receiver = await startReceiver(t, async (request) => {
    const { eventId, attempt } = readRequest(request)
    await delay(5 + numberOf(eventId) % 26)
    return { status: attempt === 1 && numberOf(eventId) % 4 === 0 ? 500 : 200 }
  })
  const { routers: [router], deliveries: [delivery], retryTiers: [retryTier] } = await pipeline.startAll()
  await pipeline.subscribe(receiver.url)
  const succeeded = new Set<string>()
  const requestsOf = (name: string) => receiver.requests.filter(({ body }) => body.includes(`"${name}_`))

  async function killInTheMiddle(service: PipelineService, process: ServiceProcess): Promise<{ readonly repeats: number; readonly oldestMs: number }> {
    const name = service.replace('-', '')
    const seen = (): number => tallyOf(requestsOf(name)).events.size
    const load = startLoad(t, pipeline, { name, received: seen })
    await load.more(400)
    await until(() => seen() > 100, { deadlineMs: patienceMs })
    const killedAt = Date.now()
    await process.kill()
    const next = await pipeline.start(service)
    await load.more(100)
    // It joins when the session of the one that was killed has expired: until then the others would only be kept busy.
    const before = await load.stop()
    await next.waitReady(patienceMs)
    const after = Array.from({ length: 100 }, (_, index) => ({ id: `${name}_${before.length + index}` }))
    await pipeline.send(after)
    const ids = [...before, ...after.map(({ id }) => id)]
    await until(() => seen() >= ids.length, { deadlineMs: patienceMs, intervalMs: 200, message: () => `${ids.length} events to come (${seen()} have)` })
    await pipeline.untilQuiet()

    const requests = requestsOf(name)
    const tally = tallyOf(requests)
    assert.deepEqual(ids.filter((id) => !tally.events.has(id)), [], 'events that never came')
    assert.deepEqual(tally.renamed, [], 'a repeat has the same delivery id')
    for (const { deliveryId, attempt, eventId } of requests.map(readRequest)) {
      if (attempt > 1 || numberOf(eventId) % 4 !== 0) succeeded.add(deliveryId)
    }
    const oldestMs = oldestRepeatMs(tally, killedAt)
    t.diagnostic(`${service} killed: ${ids.length} events, ${requests.length} requests, ${tally.repeats} repeated (the oldest ${oldestMs} ms before the kill), ${Date.now() - killedAt} ms until all was through`)
    return { repeats: tally.repeats, oldestMs }
  }

  // The delivery process was not touched: it knows what it has settled, whatever is routed or brought back again.
  assert.equal((await killInTheMiddle('router', router!)).repeats, 0)
  assert.equal((await killInTheMiddle('retry-tier', retryTier!)).repeats, 0)

  const { oldestMs } = await killInTheMiddle('delivery', delivery!)
  assert.ok(oldestMs <= mostRepeatedMs, `a request ${oldestMs} ms before the kill was made again`)

  assert.equal(await pipeline.count(pipeline.topics.dlq), 0)
  assert.equal(await pipeline.count(pipeline.topics.rejected), 0)
  const settled = (await pipeline.attempts()).filter(({ state }) => state === 'success').map(({ deliveryId }) => deliveryId)
  assert.deepEqual([...succeeded].filter((id) => !settled.includes(id)), [], 'every delivery is recorded as settled')
})
