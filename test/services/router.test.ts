import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveryId } from '../../shared/domain/ids.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import { compressionNames } from '../../shared/kafka/compression.ts'
import { createSubscriptionWriter } from '../../shared/subscriptions/write.ts'
import { openSubscriptionTable } from '../../shared/subscriptions/table.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { avroEvent, jsonEvent, openRouterLab } from './router-lab.ts'

const { skip } = kafkaForTests()

test('a JSON event: the value byte for byte, with key, headers and origin, keyed by the endpoint', { skip }, async (t) => {
  const lab = await openRouterLab(t, { partitions: 1 })
  const subscription = await lab.subscribe()
  const before = Date.now()
  const { metric } = await lab.start()
  const value = '{ "weight":136.0, "id":8202522731445525542,\n "type":"order.created" }\n'
  await lab.put([{ value: jsonEvent('first') }, { key: 'order-17', value, headers: { traceparent: '00-ab', raw: Buffer.from([0, 255]), twice: ['a', 'b'] } }])
  const routed = await lab.deliveries(2)
  const { record, delivery } = routed.find(({ delivery }) => delivery.origin.offset === 1)!
  assert.equal(delivery.id, deliveryId({ tenant: null, source: lab.events, eventId: '8202522731445525542', subscriptionId: subscription.id }))
  assert.equal(String(record.key), subscription.endpointKey)
  assert.equal(delivery.body.toString(), value)
  assert.equal(delivery.sourceKey?.toString(), 'order-17')
  assert.deepEqual(delivery.sourceHeaders.map(({ name, value }) => [name, [...value]]),
    [['traceparent', [...Buffer.from('00-ab')]], ['raw', [0, 255]], ['twice', [97]], ['twice', [98]]])
  const { timestamp, ...origin } = delivery.origin
  assert.deepEqual({ ...origin }, { topic: lab.events, partition: 0, offset: 1 })
  assert.ok(timestamp >= before - 1000 && timestamp <= Date.now() + 1000)
  assert.ok(Number.isInteger(delivery.routedAt) && delivery.routedAt >= before - 1000 && delivery.routedAt <= record.timestamp + 1000)
  const { eventId, eventType, tenant, replay, subscriptionId, attemptsMade, attempts, lastWaitMs } = delivery
  assert.deepEqual({ eventId, eventType, tenant, replay, subscriptionId, attemptsMade, attempts, lastWaitMs }, {
    eventId: '8202522731445525542', eventType: 'order.created', tenant: null, replay: 0, subscriptionId: subscription.id,
    attemptsMade: 0, attempts: [], lastWaitMs: 0,
  })
  await until(async () => (await metric('posthouse_events_total', { result: 'routed' })) === 2)
  assert.equal(await metric('posthouse_deliveries_created_total'), 2)
})

test('an Avro event: the body is built once, with the data spliced in; headers win over fields', { skip }, async (t) => {
  const lab = await openRouterLab(t, { partitions: 1 })
  await lab.subscribe({ id: 'sub_none' })
  await lab.subscribe({ id: 'sub_acme', tenant: 'acme' })
  await lab.start()
  const data = '{"object": {"amount":1.50} }'
  await lab.put([
    { value: avroEvent({ id: 'evt_1', type: 'a.b', created: 1548892800, data }) },
    { value: avroEvent({ id: 'evt_2', type: 'a.b', created: 1548892800, tenant: 'acme', data }) },
    { value: jsonEvent('field', { tenant: 'other' }), headers: { 'event-id': 'header', 'event-type': 'x.y', 'event-tenant': 'acme' } },
    { value: jsonEvent('field'), headers: { ce_id: 'cloud', ce_type: 'c.d', ce_source: '/shop', 'event-id': 'loses' } },
  ])
  const routed = (await lab.deliveries(4)).map(({ delivery }) => delivery)
  const by = (eventId: string) => routed.find((one) => one.eventId === eventId)!
  assert.equal(by('evt_1').body.toString(), `{"id":"evt_1","type":"a.b","created":1548892800,"data":${data}}`)
  assert.deepEqual([by('evt_1').subscriptionId, by('evt_2').subscriptionId, by('header').subscriptionId, by('cloud').subscriptionId],
    ['sub_none', 'sub_acme', 'sub_acme', 'sub_none'])
  assert.deepEqual([by('header').eventType, by('header').tenant], ['x.y', 'acme'])
  assert.equal(by('header').body.toString(), jsonEvent('field', { tenant: 'other' }))
  assert.deepEqual([by('cloud').eventType, by('cloud').id],
    ['c.d', deliveryId({ tenant: null, source: '/shop', eventId: 'cloud', subscriptionId: 'sub_none' })])
})

test('who gets an event: tenants, patterns, paused and disabled; nobody is counted', { skip }, async (t) => {
  const lab = await openRouterLab(t)
  const wanting = [
    await lab.subscribe({ eventTypes: ['order.created'] }),
    await lab.subscribe({ eventTypes: ['invoice.paid', 'order.*'] }),
    await lab.subscribe({ state: 'paused' }),
  ]
  await lab.subscribe({ state: 'disabled' })
  await lab.subscribe({ tenant: 'acme' })
  await lab.subscribe({ eventTypes: ['order'] })
  await lab.subscribe({ eventTypes: ['Order.created'] })
  const deleted = await lab.subscribe()
  await lab.producer.send({ topic: lab.topics.subscriptions, key: deleted.id, value: null })
  const { metric, router } = await lab.start()
  await lab.put([{ value: jsonEvent('wanted') }, { value: null }, { value: jsonEvent('unwanted', { tenant: 'nobody' }) }])
  await until(async () => (await metric('posthouse_events_total')) === 3)
  const routed = await lab.deliveries(3)
  assert.deepEqual(routed.map(({ delivery }) => delivery.subscriptionId).sort(), wanting.map(({ id }) => id).sort())
  assert.deepEqual(new Set(routed.map(({ record }) => String(record.key))), new Set(wanting.map((one) => one.endpointKey)))
  assert.deepEqual(
    await Promise.all(['routed', 'unmatched', 'skipped', 'rejected'].map((result) => metric('posthouse_events_total', { result }))), [1, 1, 1, 0])
  assert.equal(await metric('posthouse_disabled_skipped_total'), 1)
  assert.deepEqual(router.consumer.partitions().map(({ unfinishedCount }) => unfinishedCount), [0, 0])
})

test('the same event again gives the same deliveries; another source, tenant or id gives others', { skip }, async (t) => {
  const lab = await openRouterLab(t)
  await lab.subscribe()
  await lab.subscribe()
  await lab.start()
  const value = jsonEvent('same')
  await lab.put([{ value, partition: 0 }, { value, partition: 1 }, { value: jsonEvent('other') }, { value, headers: { ce_source: 'elsewhere' } }])
  const routed = (await lab.deliveries(8)).map(({ delivery }) => delivery)
  assert.equal(routed.length, 8)
  assert.equal(new Set(routed.map(({ id }) => id)).size, 6)
  const repeated = routed.filter(({ eventId, sourceHeaders }) => eventId === 'same' && sourceHeaders.length === 0)
  assert.equal(repeated.length, 4)
  assert.equal(new Set(repeated.map(({ id }) => id)).size, 2)
})

test('what is no event goes to rejected with reason and position, and the partition goes on', { skip }, async (t) => {
  const lab = await openRouterLab(t, { partitions: 1 })
  await lab.subscribe()
  const { metric, metrics } = await lab.start()
  const kinds: readonly (readonly [reason: string, value: string | Buffer])[] = [
    ['not_utf8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['byte_order_mark', `\ufeff${jsonEvent('bom')}`],
    ['not_json', '{"id":'],
    ['no_id', '{"type":"a"}'],
    ['no_type', '{"id":"a"}'],
    ['bad_type', jsonEvent('own', { type: 'posthouse.delivery.dead' })],
    ['bad_type', jsonEvent('space', { type: 'a b' })],
    ['bad_tenant', jsonEvent('tenant', { tenant: {} })],
    ['no_schema_registry', Buffer.from([0, 0, 0, 0, 7, 1, 2])],
    ['unknown_schema', Buffer.from([0xc3, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 9])],
    ['too_large', jsonEvent('large', { text: 'x'.repeat(512 * 1024) })],
  ]
  // The large one is a batch of its own.
  const puts = kinds.map(([, value], index) => ({ key: `k${index}`, value, headers: { mine: 'kept' } }))
  await lab.put(puts.slice(0, -1))
  await lab.put(puts.slice(-1))
  await lab.put([{ value: jsonEvent('good') }])
  assert.deepEqual((await lab.deliveries(1)).map(({ delivery }) => delivery.eventId), ['good'])
  const rejected = (await lab.records(lab.topics.rejected, kinds.length)).map((record) => ({
    reason: record.header('posthouse-reason'), origin: record.header('posthouse-origin'), key: String(record.key),
    mine: record.header('mine'), value: record.value,
  }))
  for (const [index, [reason, value]] of kinds.entries()) {
    const found = rejected.find(({ key }) => key === `k${index}`)
    assert.deepEqual({ ...found, value: found?.value?.toString('hex') }, {
      reason, origin: `${lab.events}/0/${index}`, key: `k${index}`, mine: 'kept', value: Buffer.from(value).subarray(0, 512 * 1024).toString('hex'),
    })
  }
  await until(async () => (await metric('posthouse_events_total', { result: 'rejected' })) === kinds.length)
  assert.equal(await metric('posthouse_events_rejected_total', { reason: 'bad_type' }), 2)
  // Series are there before anything happened in them, so that an alert on them can fire.
  assert.match(await metrics.registry.metrics(), /posthouse_events_rejected_total\{reason="internal"\} 0/)
  const committed = async () => (await lab.admin.fetchOffsets({ groupId: `${lab.groupPrefix}.router`, topics: [lab.events] }))[0]?.partitions[0]?.offset
  await until(async () => (await committed()) === String(kinds.length + 1))
})

test('compressed input is read whatever the codec, from several topics', { skip }, async (t) => {
  const lab = await openRouterLab(t, { partitions: 1 })
  const second = `${lab.prefix}more-events`
  await lab.admin.createTopics({ topics: [{ topic: second, numPartitions: 1 }] })
  await lab.subscribe()
  await lab.start({ eventsTopics: [lab.events, second] })
  for (const compression of compressionNames) {
    for (const topic of [lab.events, second]) {
      await lab.putCompressed([1, 2, 3].map((n) => jsonEvent(`${compression}-${n}-${topic}`, { pad: 'x'.repeat(500) })), compression, topic)
    }
  }
  const eventIds = async () => new Set((await lab.deliveries(compressionNames.length * 6)).map(({ delivery }) => delivery.eventId))
  await until(async () => (await eventIds()).size === compressionNames.length * 6, { deadlineMs: 30_000 })
})

test('an event sent as soon as create has returned reaches the subscription; one sent after a disable does not', { skip }, async (t) => {
  const lab = await openRouterLab(t)
  const { metric } = await lab.start()
  const table = await openSubscriptionTable({
    connection: lab.connection, topic: lab.topics.subscriptions, groupPrefix: `${lab.groupPrefix}.writer`, onFailed: (error) => { throw error },
  })
  lab.closeFirst(table.close)
  const writer = createSubscriptionWriter({ table, producer: lab.producer, topic: lab.topics.subscriptions, rules: { allowsHttp: false, policyDefaults: defaultPolicy } })
  const expected: string[] = []
  for (let round = 0; round < 3; round += 1) {
    const created = await writer.create({ url: `https://receiver.example/${round}`, eventTypes: [`round.${round}`] })
    assert.ok(created.kind === 'written', JSON.stringify(created))
    await lab.put([{ value: jsonEvent(`in-${round}`, { type: `round.${round}` }) }])
    expected.push(`in-${round} ${created.subscription.id}`)
    const disabled = await writer.update(created.subscription.id, { state: 'disabled' })
    assert.equal(disabled.kind, 'written')
    await lab.put([{ value: jsonEvent(`out-${round}`, { type: `round.${round}` }) }])
  }
  await until(async () => (await metric('posthouse_events_total')) === 6)
  const routed = await lab.deliveries(3)
  assert.deepEqual(routed.map(({ delivery }) => `${delivery.eventId} ${delivery.subscriptionId}`).sort(), expected)
})

test('a first start reads nothing of what was there, or all of it, or from a time; partitions added later are read whole', { skip }, async (t) => {
  const lab = await openRouterLab(t, { partitions: 1 })
  await lab.subscribe()
  await lab.put([{ value: jsonEvent('history-1') }, { value: jsonEvent('history-2') }])
  const routers = {
    latest: await lab.start({ groupPrefix: `${lab.groupPrefix}.latest`, startPosition: 'latest' }),
    earliest: await lab.start({ groupPrefix: `${lab.groupPrefix}.earliest`, startPosition: 'earliest' }),
    future: await lab.start({ groupPrefix: `${lab.groupPrefix}.future`, startPosition: { at: Date.now() + 3_600_000 } }),
  }
  await lab.put([{ value: jsonEvent('new') }])
  const totals = () => Promise.all(Object.values(routers).map(({ metric }) => metric('posthouse_events_total', { result: 'routed' })))
  await until(async () => String(await totals()) === '1,3,1', { message: 'one event, three, one' })

  await routers.latest.stop()
  await lab.admin.createPartitions({ topicPartitions: [{ topic: lab.events, count: 2 }] })
  await until(async () => (await lab.admin.fetchTopicOffsets(lab.events)).length === 2)
  await lab.put([{ value: jsonEvent('meanwhile'), partition: 1 }, { value: jsonEvent('away'), partition: 0 }])
  const again = await lab.start({ groupPrefix: `${lab.groupPrefix}.latest`, startPosition: 'latest' })
  await until(async () => (await again.metric('posthouse_events_total', { result: 'routed' })) === 2)
})
