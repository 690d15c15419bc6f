import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { endpointKey } from '../../shared/domain/ids.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { encodeSubscription } from '../../shared/records/subscription-codec.ts'
import { kafkaForTests, testConnection, withAdmin } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { openDeliveryLab, policyOf } from './delivery-lab.ts'

const { skip } = kafkaForTests()

test('while a topic refuses records no further attempt begins, and nothing is sent twice', { skip }, async (t) => {
  const lab = await openDeliveryLab(t, { partitions: 1 })
  const receiver = await startReceiver(t)
  const subscription = await lab.subscribe(receiver.url)
  const { delivery } = await lab.start()
  const limitAttempts = (bytes: number) => withAdmin((admin) => admin.alterConfigs({
    validateOnly: false,
    resources: [{
      type: kafkajs.ConfigResourceTypes.TOPIC, name: lab.topics.attempts,
      configEntries: [{ name: 'max.message.bytes', value: String(bytes) }, { name: 'message.timestamp.type', value: 'LogAppendTime' }],
    }],
  }))
  await limitAttempts(10)
  let early = 0
  // The brokers take a moment to heed the limit.
  await until(async () => {
    if (delivery.problems().some((problem) => problem.includes(`topic ${lab.topics.attempts} refuses records`))) return true
    if (delivery.consumer.unfinishedBytes() === 0) await lab.deliver(subscription, { eventId: `early ${++early}` })
    return false
  }, { intervalMs: 200 })
  for (let count = 0; count < 20; count += 1) await lab.deliver(subscription)
  await until(() => (delivery.consumer.partitions()[0]?.unfinishedCount ?? 0) > 20, { message: 'the others to be in hand' })
  const mendedAt = Date.now()
  await limitAttempts(1_000_000)
  await receiver.waitForRequests(early + 20, 30_000)
  await until(() => delivery.consumer.unfinishedBytes() === 0, { deadlineMs: 30_000 })
  assert.equal(receiver.requests.length, early + 20)
  assert.ok(receiver.requests.filter(({ receivedAt }) => receivedAt < mendedAt).length <= early)
})

test('thousands that wait for a URL move to the one it was changed to', { skip }, async (t) => {
  const lab = await openDeliveryLab(t, { partitions: 1 })
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => { release = resolve })
  const old = await startReceiver(t, async () => {
    await released
    return {}
  })
  const moved = await startReceiver(t, () => 'hang')
  const subscription = await lab.subscribe(old.url)
  const { delivery, metric } = await lab.start({ policyDefaults: { ...policyOf([1000]), timeoutMs: 30_000 } })
  const count = 10_000
  for (let sent = 0; sent < count; sent += 500) await Promise.all(Array.from({ length: 500 }, () => lab.deliver(subscription)))
  await until(async () => await metric('posthouse_deliveries_queued') === count - 10, { deadlineMs: 60_000 })
  await lab.subscribe(moved.url, { id: subscription.id })
  await until(() => {
    const found = delivery.subscriptions.get(subscription.id)
    return found !== undefined && found !== 'deleted' && found.url === moved.url
  })
  release()
  await moved.waitForRequests(10)
  await until(async () => await metric('posthouse_deliveries_queued') === count - 20)
  assert.equal(await metric('posthouse_faults_total'), 0)
  assert.equal(old.requests.length, 10)
})

test('a subscription whose record a newer posthouse wrote gets nothing by the record before it', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t)
  const subscription = await lab.subscribe(receiver.url)
  const { delivery, metric } = await lab.start()
  const newer = Buffer.from(encodeSubscription({ ...subscription, state: 'paused' }))
  newer.fill(0x5a, 2, 10)
  await lab.produce({ topic: lab.topics.subscriptions, key: subscription.id, value: newer })
  await until(() => delivery.subscriptions.newerCount() === 1)
  await lab.deliver(subscription)
  await until(async () => await metric('posthouse_deliveries_parked_total', { reason: 'unknown' }) === 1)
  assert.equal(receiver.requests.length, 0)
  assert.match(delivery.problems().join(), /newer posthouse/)
})

test('a URL that cannot be requested is a permanent failure', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const subscription = await lab.subscribe('no URL', { endpointKey: endpointKey('no URL') })
  await lab.start()
  await lab.deliver(subscription)
  await until(async () => (await lab.deadLetters()).length === 1)
  const [dead] = await lab.deadLetters()
  assert.deepEqual([dead?.reason, dead?.lastError, dead?.delivery.attemptsMade], ['permanent_failure', 'invalid_url', 1])
})

test('a machine whose clock is weeks ahead lets nothing expire', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t)
  const subscription = await lab.subscribe(receiver.url)
  await lab.deliver(subscription)
  const brokerTime = createBrokerTime({ wallNow: () => Date.now() + 30 * 86_400_000 })
  const producer = await createProducer({ connection: testConnection(), brokerTime })
  await lab.start({ brokerTime, producer })
  t.after(() => producer.close())
  await receiver.waitForRequests(1)
  assert.deepEqual(await lab.deadLetters(), [])
})
