import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Delivery } from '../../shared/domain/delivery.ts'
import { deliveryId } from '../../shared/domain/ids.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { ProduceError } from '../../shared/kafka/produce-error.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { readKnownDeliveries } from '../../shared/lookup/delivered.ts'
import { createReplayCounts, replayEvents, replayNumber, type EventsReplay } from '../../shared/lookup/events-replay.ts'
import { createPace } from '../../shared/lookup/pace.ts'
import { createSending, ReplayStalledError, type Sending } from '../../shared/lookup/replay-sending.ts'
import { createScanAccount } from '../../shared/lookup/scan-account.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { createTestTopic, kafkaForTests, produceTo, testConnection, type ProducedMessage } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { attempt, dead, scannerFor, success, writeAttempts } from './attempts.ts'

const { skip } = kafkaForTests()
const now = Date.now()
const door = { idField: 'id', tenantField: 'tenant', type: { kind: 'field', name: 'type' } } as const

const subscription = (overrides: Partial<StoredSubscription> = {}): StoredSubscription => ({
  id: 'sub_a', tenant: null, url: 'https://example.test/', endpointKey: 'ep_a', eventTypes: ['order.*'], state: 'active', signatureScheme: 'stripe',
  secrets: [], headers: [], policy: {} as StoredSubscription['policy'], description: null, createdAt: 0, updatedAt: 0, offset: 0, appendedAt: 0, ...overrides,
})

const event = (id: string, fields: object = {}, ago = 0): ProducedMessage =>
  ({ key: id, value: JSON.stringify({ id, type: 'order.paid', ...fields }), timestamp: now - ago, headers: { trace: id } })

async function realSending(t: TestContext, topic: string): Promise<Sending> {
  const brokerTime = createBrokerTime()
  const producer = await createProducer({ connection: testConnection(), brokerTime })
  t.after(() => producer.close(1_000))
  return createSending({ producer, brokerTime, topic, endpointKey: 'ep_a', ratePerSecond: null, signal: t.signal })
}

async function run(t: TestContext, replay: Partial<EventsReplay> & Pick<EventsReplay, 'topics'>, sending: Sending | null, signal: AbortSignal = t.signal) {
  const [counts, account] = [createReplayCounts(), createScanAccount()]
  await replayEvents(scannerFor(t), { subscription: subscription(), replay: 7, door, since: 0, known: null, ...replay }, sending, { counts, account, signal })
  return { ...counts, refused: Object.fromEntries(counts.refused), records: account.records }
}

test('what the subscription wants becomes the deliveries the router would have made, as a replay', { skip }, async (t) => {
  const [events, more, deliveries] = [await createTestTopic(t, 'replay', { partitions: 2 }), await createTestTopic(t, 'replay-more'), await createTestTopic(t, 'replay-out')]
  await produceTo(events, [
    event('evt_1', { amount: 1.0 }), event('evt_2', { type: 'order' }), event('evt_3', { tenant: 'acme' }), event('evt_4', { type: 'order.paid.late' }),
    { value: 'no event' }, { value: null }, { value: '{"id":"x"}' },
  ])
  await produceTo(more, [{ ...event('evt_1'), headers: { ce_source: 'shop' } }])
  const sending = await realSending(t, deliveries)
  const found = await run(t, { topics: [events, more] }, sending)
  assert.deepEqual(found, { wanted: 3, delivered: 0, waiting: 0, refused: { not_json: 1, no_type: 1 }, records: 8 })
  assert.deepEqual([sending.sent(), sending.failed(), sending.underWay()], [3, 0, 0])

  const records = await readTopic(deliveries)
  assert.deepEqual(new Set(records.map(({ key }) => key?.toString())), new Set(['ep_a']))
  const made = new Map<string, Delivery>(records.map(({ value }) => decodeDelivery(value!)).map((one) => [one.id, one]))
  const idOf = (eventId: string, source: string) => deliveryId({ tenant: null, source, eventId, subscriptionId: 'sub_a' })
  assert.deepEqual(new Set(made.keys()), new Set([idOf('evt_1', events), idOf('evt_4', events), idOf('evt_1', 'shop')]))
  const one = made.get(idOf('evt_1', events))!
  assert.equal(one.body.toString(), '{"id":"evt_1","type":"order.paid","amount":1}')
  assert.deepEqual([one.replay, one.attemptsMade, one.subscriptionId, one.eventType, one.sourceKey?.toString(), one.sourceHeaders.map(({ name }) => name)], [7, 0, 'sub_a', 'order.paid', 'evt_1', ['trace']])
  assert.ok(Math.abs(one.routedAt - Date.now()) < 60_000, 'it expires from the replay on')
  assert.deepEqual(replayNumber(1_700_000_000_999), 1_700_000_000)

  const counted = await run(t, { topics: [events, more], eventType: 'order.paid', subscription: subscription({ tenant: 'acme' }) }, null)
  assert.equal(counted.wanted, 1, 'of its tenant, of that type, and nothing is sent')
  assert.equal((await readTopic(deliveries)).length, 3)
})

test('times are those of the records, in whatever order producers wrote them; the end is fixed', { skip }, async (t) => {
  const events = await createTestTopic(t, 'replay-time', { config: { 'message.timestamp.type': 'CreateTime' } })
  await produceTo(events, [event('evt_40', {}, 40_000), event('evt_30', {}, 30_000), event('evt_10', {}, 10_000), event('evt_25', {}, 25_000), event('evt_50', {}, 50_000)])
  const deliveries = await createTestTopic(t, 'replay-time-out')
  const real = await realSending(t, deliveries)
  const taken: string[] = []
  const sending: Sending = {
    ...real,
    async send(delivery) {
      taken.push(delivery.eventId)
      await real.send(delivery)
      // What comes while it runs is the router's to deliver.
      if (taken.length === 1) await produceTo(events, [event('evt_new', {}, 20_000)])
    },
  }
  await run(t, { topics: [events], since: now - 30_000, until: now - 10_000 }, sending)
  assert.deepEqual(taken, ['evt_30', 'evt_25'])

  const appended = await createTestTopic(t, 'replay-append')
  await produceTo(appended, [event('evt_1')])
  const between = Date.now() + 1
  while (Date.now() <= between) await new Promise((resolve) => setTimeout(resolve, 1))
  for (let at = 0; at < 50; at += 1) await produceTo(appended, [event(`evt_later_${at}`)])
  const { wanted, records } = await run(t, { topics: [appended], until: between }, null)
  assert.deepEqual([wanted, records], [1, 1], 'where the broker keeps the time nothing behind it is looked at')
})

test('what has a success is left out, whichever replay it was and wherever it went', { skip }, async (t) => {
  const [events, attempts] = [await createTestTopic(t, 'replay-known'), await createTestTopic(t, 'replay-attempts', { partitions: 3 })]
  const ids = ['evt_ok', 'evt_ok_late', 'evt_waiting', 'evt_dead', 'evt_never']
  await produceTo(events, ids.map((id) => event(id)))
  const idOf = (eventId: string) => deliveryId({ tenant: null, source: events, eventId, subscriptionId: 'sub_a' })
  await writeAttempts(attempts, [
    attempt(idOf('evt_ok'), { ...success, endpointKey: 'ep_before' }),
    attempt(idOf('evt_ok_late'), dead), attempt(idOf('evt_ok_late'), { ...success, replay: 3 }), attempt(idOf('evt_ok_late'), { ...dead, replay: 4 }),
    attempt(idOf('evt_waiting')), attempt(idOf('evt_dead'), dead),
    // Of another subscription, which would be another id in truth.
    attempt(idOf('evt_never'), { ...success, subscriptionId: 'sub_b' }),
  ])
  const known = await readKnownDeliveries(scannerFor(t), attempts, { subscriptionId: 'sub_a', since: 0 }, createScanAccount())
  assert.deepEqual(ids.map((id) => known.stateOf(idOf(id))), ['delivered', 'delivered', 'waiting', 'ended', null])
  const { wanted, delivered, waiting } = await run(t, { topics: [events], known }, null)
  assert.deepEqual({ wanted, delivered, waiting }, { wanted: 5, delivered: 2, waiting: 1 })
  const none = await readKnownDeliveries(scannerFor(t), attempts, { subscriptionId: 'sub_a', since: Date.now() + 60_000 }, createScanAccount())
  assert.equal(none.stateOf(idOf('evt_ok')), null)
})

const aDelivery = { id: 'del_a', body: Buffer.from('{}'), sourceHeaders: [], attempts: [], replay: 1, subscriptionId: 'sub_a', tenant: null, eventId: 'e', eventType: 't', routedAt: 0, origin: { topic: 't', partition: 0, offset: 0, timestamp: 0 }, sourceKey: null, attemptsMade: 0, lastWaitMs: 0 } satisfies Delivery

const knownTime = () => {
  const brokerTime = createBrokerTime()
  brokerTime.sample(0, 1, Date.now())
  return brokerTime
}

test('refused ones are counted and the others go on; a Kafka that takes nothing ends it', async (t) => {
  let calls = 0
  const refusing = { hasRoom: () => true, room: async () => undefined, async send() {
    if (++calls % 2 === 0) throw new ProduceError('too_large', `number ${calls} is too large`)
    return { topic: 'd', partition: 0, offset: calls, appendedAt: null }
  } }
  const of = { topic: 'd', endpointKey: 'ep_a', ratePerSecond: null, signal: t.signal }
  const sending = createSending({ ...of, producer: refusing, brokerTime: knownTime() })
  for (let at = 0; at < 5; at += 1) await sending.send(aDelivery)
  await sending.idle()
  assert.deepEqual([sending.sent(), sending.failed(), sending.firstFailure()?.message], [3, 2, 'number 2 is too large'])

  const silent = { hasRoom: () => true, room: async () => undefined, send: () => new Promise<never>(() => undefined) }
  const stalled = createSending({ ...of, producer: silent, brokerTime: knownTime(), stallMs: 50 })
  await stalled.send(aDelivery)
  await assert.rejects(stalled.idle(), ReplayStalledError)

  const interrupted = new AbortController()
  const left = createSending({ ...of, producer: silent, brokerTime: knownTime(), signal: interrupted.signal })
  await left.send(aDelivery)
  interrupted.abort()
  await left.send(aDelivery)
  assert.equal(left.underWay(), 1, 'nothing new is begun')
})

test('an interrupt ends the reading, and a pace is kept without making up for what was lost', { skip }, async (t) => {
  const events = await createTestTopic(t, 'replay-interrupted')
  await produceTo(events, Array.from({ length: 100 }, (_, at) => event(`evt_${at}`)))
  const interrupted = new AbortController()
  let seen = 0
  const sending: Sending = {
    now: () => 0, idle: async () => undefined, sent: () => seen, failed: () => 0, underWay: () => 0, firstFailure: () => null,
    async send() {
      if (++seen === 10) interrupted.abort()
    },
  }
  assert.equal((await run(t, { topics: [events] }, sending, interrupted.signal)).wanted, 10)

  const pace = createPace(100, t.signal)
  const begunAt = performance.now()
  for (let at = 0; at < 20; at += 1) await pace.next()
  assert.ok(performance.now() - begunAt >= 170, 'twenty at a hundred a second')
  await new Promise((resolve) => setTimeout(resolve, 300))
  const goesOnAt = performance.now()
  for (let at = 0; at < 10; at += 1) await pace.next()
  assert.ok(performance.now() - goesOnAt >= 80, 'the pause is not made up for')
})
