import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { createWriter } from '../../shared/kafka/writer.ts'
import { deleteTopicsAfter, kafkaForTests, testConnection, testTopic, withAdmin } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

test('what a topic refuses is kept, said once and written when it is mended; meanwhile there is no room', { skip }, async (t) => {
  const topic = testTopic('writer')
  deleteTopicsAfter(t, topic)
  const producer = await createProducer({ connection: testConnection(), brokerTime: createBrokerTime(), unknownTopicGraceMs: 100 })
  t.after(() => producer.close())
  const said: string[] = []
  const writer = createWriter(producer, (level, message, fields) => { said.push(`${level} ${message} ${JSON.stringify(fields)}`) })
  assert.ok(writer.hasRoom())
  await writer.room()

  let isWritten = false
  const writing = writer.write(['a', 'b', 'c'].map((text) => ({ topic, key: null, value: Buffer.from(text) })))
  void writing.then(() => { isWritten = true })
  await until(() => writer.refusals().length > 0)
  assert.deepEqual(writer.refusals(), [topic])
  assert.equal(writer.hasRoom(), false)
  let hadRoom = false
  const room = writer.room().then(() => { hadRoom = true })
  const refusedBefore = producer.counts().refusedRecords
  await until(() => producer.counts().refusedRecords > refusedBefore + 3)
  assert.deepEqual([isWritten, hadRoom, writer.hasRoom(), said.length], [false, false, false, 1])
  assert.match(said[0] ?? '', new RegExp(`error .*"topic":"${topic}".*unknown_topic`))

  await withAdmin((admin) => admin.createTopics({ topics: [{ topic, numPartitions: 1 }] }))
  assert.equal(await writing, true)
  await room
  assert.deepEqual([writer.refusals(), writer.hasRoom()], [[], true])
})

test('a producer that is closed: not written, and not tried again', { skip }, async () => {
  const producer = await createProducer({ connection: testConnection(), brokerTime: createBrokerTime() })
  await producer.close()
  const writer = createWriter(producer, () => undefined)
  assert.equal(await writer.write([{ topic: 'any', key: null, value: null }]), false)
  assert.deepEqual(writer.refusals(), [])
})
