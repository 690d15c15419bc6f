import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestTopic, kafkaForTests, produceTo, withAdmin } from './kafka.ts'
import { readTopic } from './topic-reader.ts'

const { skip } = kafkaForTests()

test('a topic is read whole, in the order of each partition, with keys, headers and nulls', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'support', { partitions: 3 })
  const numbers = Array.from({ length: 300 }, (_, index) => index)
  await produceTo(topic, numbers.map((number) => ({ value: String(number), partition: number % 2, headers: { number: `n${number}` } })))
  await produceTo(topic, [{ key: 'gone', value: null, partition: 0 }])
  const records = await readTopic(topic)
  assert.deepEqual(records.map(({ value }) => value?.toString()), [
    ...numbers.filter((number) => number % 2 === 0).map(String), undefined,
    ...numbers.filter((number) => number % 2 === 1).map(String),
  ])
  assert.equal(records[0]?.header('number'), 'n0')
  assert.equal(records[150]?.key?.toString(), 'gone')
  assert.equal(records[0]?.header('other'), undefined)
})

test('topics and groups of a test are gone when it has ended', { skip }, async (t) => {
  let topic = ''
  await t.test('makes a topic and reads it', async (inner) => {
    topic = await createTestTopic(inner, 'cleaned')
    await produceTo(topic, [{ value: 'x' }])
    assert.equal((await readTopic(topic)).length, 1)
  })
  assert.ok(topic)
  assert.ok(!(await withAdmin((admin) => admin.listTopics())).includes(topic))
})

test('a topic outlives the hooks that were registered after it', { skip }, async (t) => {
  await t.test('makes a topic and stops something later', async (inner) => {
    const topic = await createTestTopic(inner, 'outlives')
    inner.after(async () => {
      assert.ok((await withAdmin((admin) => admin.listTopics())).includes(topic))
    })
  })
})
