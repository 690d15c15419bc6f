import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { openDeliveryLab } from './delivery-lab.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

test('a delivery is signed, sent once and recorded', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t)
  const subscription = await lab.subscribe(`${receiver.url}/in?token=t1`)
  const { metric } = await lab.start()
  const body = Buffer.from('{ "weight":136.0,  "id":8202522731445525542 }\n')
  const delivery = await lab.deliver(subscription, { body })
  const [request] = await receiver.waitForRequests(1)
  assert.deepEqual(request?.body, body)
  assert.equal(request?.path, '/in?token=t1')
  assert.equal(request?.headers['x-webhook-delivery'], delivery.id)
  assert.equal(request?.headers['idempotency-key'], delivery.id)
  assert.equal(request?.headers['x-webhook-attempt'], '1')
  assert.equal(request?.headers['x-webhook-event'], 'order.created')
  const [, seconds, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(request?.headers['x-webhook-signature'] ?? '') ?? []
  assert.equal(digest, createHmac('sha256', 'whsec_a-secret-for-tests').update(`${seconds}.`).update(body).digest('hex'))
  await until(async () => (await metric('posthouse_delivery_duration_seconds')) > 0)
  const attempts = await lab.attempts()
  assert.deepEqual(attempts.map(({ deliveryId, attempt, state, status }) => ({ deliveryId, attempt, state, status })),
    [{ deliveryId: delivery.id, attempt: 1, state: 'success', status: 200 }])
  assert.equal(receiver.requests.length, 1)
})

test('a failure waits in the tier of its schedule with the whole story, the last one is a dead letter', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t, () => ({ status: 503, body: 'try later' }))
  const subscription = await lab.subscribe(receiver.url)
  await lab.start()
  const sentAt = Date.now()
  await lab.deliver(subscription, { eventId: 'first' })
  await until(async () => (await lab.waiting()).length === 1)
  const [waiting] = await lab.waiting()
  assert.equal(waiting?.topic, lab.topics.tier(1000))
  assert.equal(String(waiting?.key), subscription.endpointKey)
  const due = Number(waiting?.header('posthouse-due'))
  assert.ok(due >= sentAt + 1000 && due <= Date.now() + 1100, `due ${due - sentAt} ms after it was sent`)

  await lab.deliver(subscription, {
    eventId: 'last', attemptsMade: 2,
    attempts: [1, 2].map((attempt) => ({ attempt, startedAt: 1, durationMs: 1, status: 500, failureClass: 'retriable', error: 'http_500', excerpt: null })),
  })
  await until(async () => (await lab.deadLetters()).length === 1)
  const [dead] = await lab.deadLetters()
  assert.equal(dead?.reason, 'exhausted')
  assert.deepEqual(dead?.delivery.attempts.map(({ attempt, status, excerpt }) => [attempt, status, excerpt]), [[1, 500, null], [2, 500, null], [3, 503, 'try later']])
  assert.equal(dead?.subscription?.host, new URL(receiver.url).host)
})

test('what a subscription says at the time of the attempt decides', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t)
  const paused = await lab.subscribe(`${receiver.url}/paused`, { state: 'paused' })
  const disabled = await lab.subscribe(`${receiver.url}/disabled`, { state: 'disabled' })
  const deleted = await lab.subscribe(`${receiver.url}/deleted`)
  await lab.remove(deleted.id)
  const foreign = await lab.subscribe(`${receiver.url}/foreign`, { tenant: 'somebody else' })
  const expired = await lab.subscribe(`${receiver.url}/expired`)
  const { metric } = await lab.start()
  for (const subscription of [paused, disabled, deleted, foreign]) await lab.deliver(subscription)
  await lab.deliver({ id: 'sub_never_written', endpointKey: 'ep_x' })
  await lab.deliver(expired, { routedAt: Date.now() - 15 * 86_400_000 })
  await until(async () => await metric('posthouse_deliveries_parked_total') === 2 && await metric('posthouse_dead_letters_total') === 2
    && await metric('posthouse_deliveries_cancelled_total') === 2)
  assert.equal(await metric('posthouse_deliveries_parked_total', { reason: 'paused' }), 1)
  assert.equal(await metric('posthouse_deliveries_parked_total', { reason: 'unknown' }), 1)
  assert.deepEqual((await lab.deadLetters()).map(({ reason }) => reason).sort(), ['disabled', 'expired'])
  const cancelled = (await lab.attempts()).filter(({ state }) => state === 'cancelled').map(({ reason }) => String(reason))
  assert.deepEqual(cancelled.sort(), ['deleted', 'tenant_differs'])
  assert.equal(receiver.requests.length, 0)
})

test('410 makes the endpoint gone: its deliveries end until the subscription is written again', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t, () => ({ status: 410 }))
  const subscription = await lab.subscribe(receiver.url)
  const first = await lab.start()
  await lab.deliver(subscription, { eventId: 'told' })
  await until(async () => await first.metric('posthouse_dead_letters_total', { reason: 'gone' }) === 1)
  await lab.deliver(subscription, { eventId: 'earlier', routedAt: Date.now() - 60_000 })
  await lab.deliver(subscription, { eventId: 'later', routedAt: Date.now() + 1_000 })
  await until(async () => await first.metric('posthouse_dead_letters_total', { reason: 'gone' }) === 2)
  await until(async () => await first.metric('posthouse_deliveries_cancelled_total', { reason: 'gone' }) === 1)
  assert.equal(receiver.requests.length, 1)
  await first.stop()

  // A new owner knows it from the endpoint-health topic.
  const second = await lab.start()
  await lab.deliver(subscription, { eventId: 'restart', routedAt: Date.now() - 60_000 })
  await until(async () => await second.metric('posthouse_dead_letters_total', { reason: 'gone' }) === 1)
  receiver.script(() => ({}))
  await lab.subscribe(receiver.url, { id: subscription.id })
  const writtenAt = performance.now()
  // As of after the write: a table that is less than a second old may still be from before it.
  await until(() => second.delivery.subscriptions.ageMs() < performance.now() - writtenAt)
  await lab.deliver(subscription, { eventId: 'revived' })
  await receiver.waitForRequests(2)
})

test('a throttled endpoint gets nothing until it may, and the others are not held up', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const busy = await startReceiver(t, () => ({ status: 429, headers: { 'retry-after': '60' } }))
  const calm = await startReceiver(t)
  const throttled = await lab.subscribe(busy.url)
  const healthy = await lab.subscribe(calm.url)
  const { metric } = await lab.start()
  await lab.deliver(throttled)
  await until(async () => (await lab.waiting()).length === 1)
  for (let count = 0; count < 20; count += 1) {
    await lab.deliver(throttled)
    await lab.deliver(healthy)
  }
  await calm.waitForRequests(20)
  await until(async () => await metric('posthouse_deliveries_parked_total', { reason: 'throttled' }) === 20)
  assert.equal(busy.requests.length, 1)
  const dues = (await lab.waiting()).map((record) => Number(record.header('posthouse-due')))
  assert.ok(Math.min(...dues) >= busy.requests[0]!.receivedAt + 60_000 - 5, 'none is due before the quiet ends')
})

test('repeats of settled and of unfinished deliveries are not sent', { skip }, async (t) => {
  const lab = await openDeliveryLab(t, { partitions: 1 })
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => { release = resolve })
  const receiver = await startReceiver(t, async () => {
    await released
    return {}
  })
  const subscription = await lab.subscribe(receiver.url)
  const { metric, delivery } = await lab.start()
  await lab.deliver(subscription, { eventId: 'same' })
  await lab.deliver(subscription, { eventId: 'same' })
  await until(async () => await metric('posthouse_repeats_dropped_total') === 1)
  release()
  await until(() => delivery.consumer.unfinishedBytes() === 0)
  await lab.deliver(subscription, { eventId: 'same' })
  await until(async () => await metric('posthouse_repeats_dropped_total') === 2)
  // The same id with another body is another event, wrongly named: both are sent.
  await lab.deliver(subscription, { eventId: 'same', body: Buffer.from('{"other":true}') })
  await receiver.waitForRequests(2)
  await until(() => delivery.consumer.unfinishedBytes() === 0)
  assert.equal(receiver.requests.length, 2)
})

test('poison in the deliveries topic goes to rejected and holds nothing up', { skip }, async (t) => {
  const lab = await openDeliveryLab(t, { partitions: 1 })
  const receiver = await startReceiver(t)
  const subscription = await lab.subscribe(receiver.url)
  const { metric } = await lab.start()
  await lab.produce({ topic: lab.topics.deliveries, key: 'x', value: Buffer.from('not ours'), headers: [{ name: 'a', value: 'b' }] })
  await lab.produce({ topic: lab.topics.deliveries, key: 'x', value: null })
  await lab.deliver(subscription)
  await receiver.waitForRequests(1)
  await until(async () => await metric('posthouse_deliveries_rejected_total') === 2)
})

test('a hanging endpoint does not hold up a healthy one in the same partition', { skip }, async (t) => {
  const lab = await openDeliveryLab(t, { partitions: 1 })
  const hanging = await startReceiver(t, () => 'hang')
  const healthy = await startReceiver(t)
  const slow = await lab.subscribe(hanging.url)
  const quick = await lab.subscribe(healthy.url)
  await lab.start()
  for (let count = 0; count < 100; count += 1) await Promise.all([lab.deliver(slow), lab.deliver(quick)])
  await healthy.waitForRequests(100, 10_000)
  assert.ok(hanging.requests.length <= 20, `${hanging.requests.length} requests to the hanging one`)
})
