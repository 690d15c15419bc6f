import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { createKafka } from '../../shared/kafka/client.ts'
import { startTable } from '../../shared/kafka/table.ts'
import { createTestTopic, kafkaForTests, produceTo, testConnection, testTopic, withAdmin } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const skip = kafkaForTests().skip

async function follow(t: TestContext, topic: string) {
  const values = new Map<string, { value: string; partition: number }>()
  const table = await startTable({
    connection: testConnection(),
    topic,
    groupPrefix: testTopic('table'),
    onRecord: ({ key, value, partition }) => {
      if (value === null) values.delete(String(key))
      else values.set(String(key), { value: String(value), partition })
    },
    onReset: (partition) => {
      for (const [key, entry] of values) if (entry.partition === partition) values.delete(key)
    },
    onFailed: (error) => { throw error },
  })
  t.after(() => table.close())
  return { table, values, text: () => Object.fromEntries([...values].map(([key, { value }]) => [key, value])) }
}

test('a table is fresh only once it holds what was written before', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'table', { partitions: 3, config: { 'cleanup.policy': 'compact' } })
  await produceTo(topic, [{ key: 'a', value: '1' }, { key: 'b', value: '1' }, { key: 'a', value: '2' }, { key: 'b', value: null }])
  const { table, values, text } = await follow(t, topic)
  await table.waitFresh(performance.now())
  assert.deepEqual(text(), { a: '2' })
  for (let round = 0; round < 30; round += 1) {
    await produceTo(topic, [{ key: `k${round % 7}`, value: String(round) }])
    const writtenAt = performance.now()
    await table.waitFresh(writtenAt)
    assert.equal(values.get(`k${round % 7}`)?.value, String(round))
    assert.ok(table.freshAsOf() >= writtenAt)
  }
})

test('an idle table stays younger than a second', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'table', { partitions: 2, config: { 'cleanup.policy': 'compact' } })
  const { table } = await follow(t, topic)
  await table.waitFresh(performance.now())
  const first = table.freshAsOf()
  await until(() => table.freshAsOf() > first + 2000)
})

test('a topic made anew empties the table and fills it again', { skip }, async (t) => {
  const config = { 'cleanup.policy': 'compact' }
  const topic = await createTestTopic(t, 'table', { partitions: 1, config })
  await produceTo(topic, [{ key: 'old', value: '1' }, { key: 'both', value: '1' }])
  const { table, text } = await follow(t, topic)
  await table.waitFresh(performance.now())
  assert.deepEqual(text(), { old: '1', both: '1' })
  await withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await until(async () => !(await admin.listTopics()).includes(topic))
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries: [{ name: 'cleanup.policy', value: 'compact' }] }], waitForLeaders: true })
  })
  await until(() => Object.keys(text()).length === 0, { deadlineMs: 40_000, message: 'the table to be emptied' })
  await produceTo(topic, [{ key: 'both', value: '2' }])
  await until(() => text()['both'] === '2')
  assert.deepEqual(text(), { both: '2' })
})

test('a topic made anew that is being written to when it is noticed is read whole', { skip }, async (t) => {
  const config = { 'cleanup.policy': 'compact' }
  const topic = await createTestTopic(t, 'table', { partitions: 1, config })
  await produceTo(topic, Array.from({ length: 10 }, (_, index) => ({ key: `old${index}`, value: '1' })))
  const { table, text } = await follow(t, topic)
  await table.waitFresh(performance.now())
  await withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await until(async () => !(await admin.listTopics()).includes(topic))
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries: [{ name: 'message.timestamp.type', value: 'LogAppendTime' }] }], waitForLeaders: true })
  })
  const producer = createKafka(testConnection()).producer({ allowAutoTopicCreation: false })
  await producer.connect()
  t.after(() => producer.disconnect())
  let written = 0
  const write = () => producer.send({ topic, messages: [{ key: `new${written++}`, value: '2' }] })
  // Before the next look, more than the old topic had: offsets tell nothing.
  for (let index = 0; index < 20; index += 1) await write()
  await until(async () => {
    await write()
    return !('old0' in text())
  }, { deadlineMs: 40_000, intervalMs: 1, message: 'the topic made anew to be noticed' })
  for (let index = 0; index < 20; index += 1) await write()
  await table.waitFresh(performance.now())
  assert.deepEqual(Object.keys(text()).sort(), Array.from({ length: written }, (_, index) => `new${index}`).sort())
})

test('a topic made anew with as many records as the old one had is told from it', { skip }, async (t) => {
  const config = { 'cleanup.policy': 'compact' }
  const topic = await createTestTopic(t, 'table', { partitions: 2, config })
  await produceTo(topic, [0, 1].flatMap((partition) => [{ key: `old${partition}`, value: '1', partition }, { key: `both${partition}`, value: '1', partition }]))
  const { table, text } = await follow(t, topic)
  await table.waitFresh(performance.now())
  await withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await until(async () => !(await admin.listTopics()).includes(topic))
    await admin.createTopics({ topics: [{ topic, numPartitions: 2, configEntries: [{ name: 'message.timestamp.type', value: 'LogAppendTime' }] }], waitForLeaders: true })
  })
  await produceTo(topic, [0, 1].flatMap((partition) => ['a', 'b', 'c'].slice(partition).map((key) => ({ key: `${key}${partition}`, value: '2', partition }))))
  const expected = { a0: '2', b0: '2', b1: '2', c0: '2', c1: '2' }
  await until(() => isDeepStrictEqual(text(), expected), { deadlineMs: 40_000, message: () => `the new records only: ${JSON.stringify(text())}` })
  await table.waitFresh(performance.now())
  assert.deepEqual(text(), expected)
})
