import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noPolicy } from '../../shared/domain/policy.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { tallyOf } from './received.ts'

const { skip } = kafkaForTests()

test('an endpoint that hangs holds up nobody beside it in its partition, and loses nothing', { skip }, async (t) => {
  const events = 250
  const timeoutMs = 15_000
  // Its deliveries alone are three times the window.
  const pipeline = await openPipeline(t, {
    partitions: 1, env: { POSTHOUSE_WINDOW_BYTES: '1MiB', POSTHOUSE_PARK_DELAYS: '1s,2s' },
  })
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => { release = resolve })
  const hanging = await startReceiver(t, async () => {
    await released
    return {}
  })
  const healthy = await startReceiver(t)
  const { deliveries } = await pipeline.startAll()
  await Promise.all([
    pipeline.subscribe(hanging.url, { policy: { ...noPolicy, timeoutMs, scheduleMs: Array.from({ length: 20 }, () => 1_000) } }),
    pipeline.subscribe(healthy.url),
  ])
  const sentAt = performance.now()
  const fields = { text: 'x'.repeat(12_000) }
  for (let at = 0; at < events; at += 50) {
    await pipeline.send(Array.from({ length: 50 }, (_, n) => ({ id: `evt_${at + n}`, fields })))
  }
  // Behind the hanging one's first ten alone they would wait for 25 times its timeout.
  await healthy.waitForRequests(events, 4 * timeoutMs)
  t.diagnostic(`${events} to the healthy one in ${Math.round(performance.now() - sentAt)} ms, ${hanging.requests.length} begun at the hanging one`)
  assert.deepEqual([tallyOf(healthy.requests).events.size, tallyOf(healthy.requests).repeats], [events, 0])
  assert.ok(hanging.mostInFlight() <= 10, `${hanging.mostInFlight()} in flight at the one that hangs`)
  assert.ok(await pipeline.metric(deliveries, 'posthouse_deliveries_parked_total', { reason: 'overflow' }) > 0)

  release()
  const delivered = async () => (await pipeline.attempts()).filter(({ state }) => state === 'success').length
  await until(async () => await delivered() === 2 * events, { deadlineMs: patienceMs, intervalMs: 500, message: 'all of them to be delivered' })
  assert.deepEqual([tallyOf(hanging.requests).events.size, tallyOf(hanging.requests).renamed.length], [events, 0])
  assert.deepEqual([await pipeline.count(pipeline.topics.dlq), healthy.requests.length], [0, events])
})
