import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { expectCli } from '../cli/run-cli.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { isSignedBy, readRequest } from './received.ts'

const { skip } = kafkaForTests()

type Replayed = { replay: number; wanted: number; alreadyDelivered: number | null; toSend: number; sent: number | null }

const secret = 'whsec_the-secret-of-a-late-subscription'
const eventCount = 30

test('who subscribes late gets the old events by a replay, under the ids the router gives them; what was delivered can be left out', { skip }, async (t) => {
  const pipeline = await openPipeline(t)
  await pipeline.startAll()
  const replay = async (subscriptionId: string, ...args: string[]): Promise<Replayed> =>
    (await expectCli(0, ['events', 'replay', '--subscription', subscriptionId, '--since', '1h', '--yes', '-o', 'json', ...args], { env: pipeline.environment })).json() as Replayed

  const [early, late] = [await startReceiver(t), await startReceiver(t)]
  const first = await pipeline.subscribe(early.url)
  const events = Array.from({ length: eventCount }, (_, at) => ({ id: `evt_${at}`, type: at % 3 === 0 ? 'user.created' : 'order.paid', fields: { at } }))
  await pipeline.send(events)
  const original = new Map((await early.waitForRequests(eventCount, patienceMs)).map(readRequest).map((one) => [one.eventId, one]))
  assert.equal(original.size, eventCount)

  const second = await pipeline.subscribe(late.url, { secret })
  const orders = await replay(second.id, '--type', 'order.*')
  assert.deepEqual([orders.wanted, orders.sent], [20, 20])
  await late.waitForRequests(20, patienceMs)
  await until(async () => (await pipeline.attempts()).filter((one) => one.subscriptionId === second.id && one.state === 'success').length === 20, { deadlineMs: patienceMs, intervalMs: 200 })
  const rest = await replay(second.id, '--undelivered')
  assert.deepEqual([rest.wanted, rest.alreadyDelivered, rest.sent], [eventCount, 20, 10])
  const received = (await late.waitForRequests(eventCount, patienceMs)).map(readRequest)
  assert.deepEqual(new Set(received.map(({ eventId }) => eventId)), new Set(original.keys()))
  for (const one of received) {
    assert.deepEqual(one.request.body, original.get(one.eventId)?.request.body)
    assert.ok(isSignedBy(one, secret))
    assert.deepEqual([one.attempt, one.request.headers['idempotency-key']], [1, one.deliveryId])
    assert.equal(one.request.headers['x-webhook-replay'], String(one.request.headers['x-webhook-event'] === 'order.paid' ? orders.replay : rest.replay))
  }

  await until(async () => (await pipeline.attempts()).filter((one) => one.subscriptionId === second.id && one.state === 'success').length === eventCount, { deadlineMs: patienceMs, intervalMs: 200 })
  const nothing = await replay(second.id, '--undelivered')
  assert.deepEqual([nothing.alreadyDelivered, nothing.toSend, nothing.sent], [eventCount, 0, 0])

  // Without it everything is sent again, under the ids of the first time.
  const again = await replay(first.id)
  assert.equal(again.sent, eventCount)
  const twice = (await early.waitForRequests(2 * eventCount, patienceMs)).map(readRequest)
  assert.ok(twice.every(({ eventId, deliveryId }) => deliveryId === original.get(eventId)?.deliveryId))

  // The router itself, for the late subscription: events that a producer writes once more.
  await pipeline.send(events)
  await pipeline.untilQuiet()
  const routed = (await pipeline.read(pipeline.topics.deliveries)).map(({ value }) => decodeDelivery(value!)).filter((one) => one.subscriptionId === second.id && one.replay === 0)
  const idsOf = (of: readonly { eventId: string; deliveryId: string }[]) => new Map(of.map(({ eventId, deliveryId }) => [eventId, deliveryId]))
  assert.equal(routed.length, eventCount)
  assert.deepEqual(idsOf(routed.map(({ eventId, id }) => ({ eventId, deliveryId: id }))), idsOf(received))
  assert.equal(late.requests.length, eventCount, 'what a later replay has delivered is not sent again')
})
