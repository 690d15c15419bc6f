import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import type { Acknowledgement } from '../../shared/kafka/produce-batch.ts'
import { ProduceError, type ProduceRefusal } from '../../shared/kafka/produce-error.ts'
import { createProducer, type ProducerOptions } from '../../shared/kafka/producer.ts'
import { createTestTopic, kafkaForTests, testConnection, testTopic, withAdmin } from '../support/kafka.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { readTopic } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'

const { skip, brokers } = kafkaForTests()

async function startProducer(t: TestContext, options: Partial<ProducerOptions> = {}) {
  const brokerTime = createBrokerTime()
  const producer = await createProducer({ connection: testConnection(), brokerTime, ...options })
  t.after(() => producer.close(0))
  return { producer, brokerTime }
}

async function startProxy(t: TestContext) {
  const [host, port] = brokers[0]!.split(':')
  const proxy = await startTcpProxy({ host: host!, port: Number(port) })
  t.after(() => proxy.close())
  return proxy
}

const isRefusal = (reason: ProduceRefusal, text: RegExp) => (error: unknown) =>
  error instanceof ProduceError && error.reason === reason && text.test(error.message)

test('every record is acknowledged with the place it is found at', { skip }, async (t) => {
  const topics = [await createTestTopic(t, 'producer-a', { partitions: 5 }), await createTestTopic(t, 'producer-b', { partitions: 2 })]
  const { producer, brokerTime } = await startProducer(t)
  const sent = Array.from({ length: 3_000 }, (_, number) => ({
    topic: topics[number % 2]!,
    key: number % 3 === 0 ? null : `key-${number % 50}`,
    value: number % 100 === 7 && number % 3 !== 0 ? null : Buffer.from(`value ${number}`),
    headers: [{ name: 'number', value: String(number) }, { name: '__proto__', value: 'a' }, { name: '__proto__', value: Buffer.from('b') }],
  }))
  const acknowledged = await Promise.all(sent.map((record) => producer.send(record)))
  const placeOf = ({ topic, partition, offset }: Acknowledgement) => `${topic}/${partition}/${offset}`
  const expected = new Map(sent.map((record, index) => [placeOf(acknowledged[index]!), { record, ack: acknowledged[index]! }]))
  assert.equal(expected.size, sent.length)
  for (const record of (await Promise.all(topics.map((topic) => readTopic(topic)))).flat()) {
    const { record: original, ack } = expected.get(placeOf({ ...record, appendedAt: null }))!
    assert.equal(record.header('number'), original.headers[0]!.value)
    assert.equal(record.header('__proto__'), 'b')
    assert.equal(record.key?.toString() ?? null, original.key)
    assert.deepEqual(record.value, original.value)
    assert.equal(record.timestamp, ack.appendedAt)
    expected.delete(placeOf(ack))
  }
  assert.equal(expected.size, 0)
  const { requests, retriedRecords } = producer.counts()
  assert.ok(requests >= 6 && requests < 60, `${requests} requests for 3,000 records`)
  assert.equal(retriedRecords, 0)
  assert.equal(producer.queuedBytes(), 0)
  assert.ok(brokerTime.uncertaintyMs() !== null && brokerTime.nowForWait() <= brokerTime.nowForDue())
})

test('a record goes to the partition it names, and a topic that grows is used whole', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-grows', { partitions: 2 })
  const { producer } = await startProducer(t, { unknownTopicGraceMs: 30_000 })
  const impatient = (await startProducer(t, { unknownTopicGraceMs: 0 })).producer
  const send = (partition: number, by = producer) => by.send({ topic, partition, key: 'k', value: Buffer.from('x') })
  assert.equal((await send(1)).partition, 1)
  await assert.rejects(send(3, impatient), isRefusal('unknown_topic', /partition 3 of topic/))
  const early = send(3)
  await until(() => producer.counts().retriedRecords > 0)
  await withAdmin((admin) => admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] }))
  assert.equal((await early).partition, 3)
  const spread = await Promise.all(Array.from({ length: 8 }, () => producer.send({ topic, key: null, value: Buffer.from('x') })))
  assert.equal(new Set(spread.map(({ partition }) => partition)).size, 4)
})

test('an unknown topic fails its own records with a hint, and no others', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-known')
  const missing = testTopic('missing')
  const { producer } = await startProducer(t, { unknownTopicGraceMs: 300 })
  const [first, second, third] = await Promise.allSettled([
    producer.send({ topic, key: null, value: Buffer.from('1') }),
    producer.send({ topic: missing, key: null, value: Buffer.from('2') }),
    producer.send({ topic, key: null, value: Buffer.from('3') }),
  ])
  assert.equal(first.status, 'fulfilled')
  assert.ok(second.status === 'rejected' && isRefusal('unknown_topic', new RegExp(`${missing} does not exist: create`))(second.reason))
  assert.equal(third.status, 'fulfilled')
})

test('a record over the own limit is refused before it is sent, with the limit in the error', { skip }, async (t) => {
  const { producer } = await startProducer(t, { maxRecordBytes: 1_000 })
  const headers = [{ name: 'long', value: 'x'.repeat(500) }]
  await assert.rejects(
    producer.send({ topic: testTopic('never'), key: 'k'.repeat(300), value: Buffer.alloc(300), headers }), isRefusal('too_large', /limit is 1000/),
  )
})

test('a record that the broker finds too large fails alone, the others of its batch are written once', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-large', { config: { 'max.message.bytes': '5000' } })
  const { producer } = await startProducer(t)
  const sizes = Array.from({ length: 40 }, (_, index) => (index === 13 || index === 29 ? 9_000 : 200))
  const results = await Promise.allSettled(sizes.map((size, index) => producer.send({ topic, key: String(index), value: randomBytes(size) })))
  for (const [index, result] of results.entries()) {
    if (sizes[index]! < 5_000) assert.equal(result.status, 'fulfilled', `record ${index}`)
    else assert.ok(result.status === 'rejected' && isRefusal('too_large', /max.message.bytes/)(result.reason))
  }
  assert.equal((await readTopic(topic)).length, 38)
  assert.equal(producer.counts().refusedRecords, 2)
})

test('a record that the broker finds invalid fails alone, also beside other topics in the same request', { skip }, async (t) => {
  const compacted = await createTestTopic(t, 'producer-compacted', { config: { 'cleanup.policy': 'compact' } })
  const plain = await createTestTopic(t, 'producer-plain')
  const { producer } = await startProducer(t)
  const results = await Promise.allSettled(Array.from({ length: 20 }, (_, index) =>
    producer.send({ topic: index % 2 ? plain : compacted, key: index === 6 ? null : `k${index}`, value: Buffer.from('x') })))
  assert.deepEqual(results.flatMap(({ status }, index) => (status === 'rejected' ? [index] : [])), [6])
  assert.equal((await readTopic(compacted)).length, 9)
  assert.equal((await readTopic(plain)).length, 10)
})

test('cut connections lose nothing, and what they repeat is counted', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-cut', { partitions: 3 })
  const proxy = await startProxy(t)
  const { producer } = await startProducer(t, { connection: testConnection({ socketFactory: proxy.socketFactory }) })
  const sends: Promise<Acknowledgement>[] = []
  for (let round = 0; round < 5; round++) {
    for (let index = 0; index < 200; index++) {
      sends.push(producer.send({ topic, key: null, value: Buffer.from(String(round * 200 + index)) }))
    }
    await until(() => producer.counts().acknowledgedRecords > round * 100)
    sends.push(producer.send({ topic, key: null, value: Buffer.from(`cut ${round}`) }))
    await new Promise((resolve) => setImmediate(resolve))
    proxy.cut()
  }
  await Promise.all(sends)
  const values = (await readTopic(topic)).map(({ value }) => value!.toString())
  assert.equal(new Set(values).size, 1_005)
  assert.ok(values.length - 1_005 <= producer.counts().retriedRecords)
})

test('an answer that never came: the record is sent again after the cut, at least once', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-swallowed')
  const proxy = await startProxy(t)
  const { producer } = await startProducer(t, { connection: testConnection({ socketFactory: proxy.socketFactory }) })
  await producer.send({ topic, key: null, value: Buffer.from('first') })
  proxy.swallowAnswers(true)
  const second = producer.send({ topic, key: null, value: Buffer.from('second') })
  await until(async () => (await withAdmin((admin) => admin.fetchTopicOffsets(topic)))[0]!.high === '2')
  proxy.swallowAnswers(false)
  proxy.cut()
  assert.equal((await second).offset, 2)
  assert.equal(producer.counts().retriedRecords, 1)
})

test('while the broker is away records wait, room runs out, and all are written when it is back', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-away')
  const proxy = await startProxy(t)
  proxy.shut()
  const { producer } = await startProducer(t, { connection: testConnection({ socketFactory: proxy.socketFactory }), maxQueuedBytes: 10_000 })
  const sends = Array.from({ length: 20 }, () => producer.send({ topic, key: null, value: Buffer.alloc(1_000) }))
  assert.equal(producer.hasRoom(), false)
  let hasRoom = false
  const room = producer.room().then(() => { hasRoom = true })
  await until(() => producer.counts().retriedRecords > 40)
  assert.equal(hasRoom, false)
  assert.ok(producer.queuedBytes() > 20_000)
  proxy.open()
  assert.equal((await Promise.all(sends)).length, 20)
  await room
  assert.equal(producer.queuedBytes(), 0)
})

test('close writes what is queued', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'producer-close')
  const { producer } = await startProducer(t)
  const sends = Array.from({ length: 2_000 }, (_, index) => producer.send({ topic, key: null, value: Buffer.from(String(index)) }))
  await Promise.all([producer.close(), producer.close()])
  assert.equal((await Promise.all(sends)).length, 2_000)
  await assert.rejects(producer.send({ topic, key: null, value: null }), isRefusal('closed', /closed/))
})

test('close gives up at its deadline and says so for each record', { skip }, async (t) => {
  const proxy = await startProxy(t)
  proxy.shut()
  const { producer } = await startProducer(t, { connection: testConnection({ socketFactory: proxy.socketFactory }) })
  const sends = Promise.allSettled([1, 2].map(() => producer.send({ topic: 'any', key: null, value: Buffer.from('x') })))
  await producer.close(50)
  for (const result of await sends) assert.ok(result.status === 'rejected' && isRefusal('closed', /may or may not/)(result.reason))
})
