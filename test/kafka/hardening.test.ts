import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertSource } from '../../shared/kafka/hardening.ts'
import { createKafka } from '../../shared/kafka/client.ts'
import { createProduceGateway } from '../../shared/kafka/produce-gateway.ts'
import { createTestTopic, deleteGroupAfter, kafkaForTests, produceTo, testConnection, testTopic, withAdmin } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

test('another source than the one a patch was written for is an error that names the file', () => {
  assert.throws(() => assertSource('kafkajs/src/index.js', 'f'.repeat(64)), /kafkajs\/src\/index\.js is not the file this patch was written for/)
})

const overwritten = 300

/** `tail`: only the first record of the batch is left. `emptied`: none; the broker keeps the batch for its producer's sequence numbers. */
for (const [what, isIdempotent] of [['tail', false], ['emptied', true]] as const) {
  test(`a consumer gets past a compacted batch at the end of a segment: ${what}`, { skip }, async (t) => {
    const topic = await createTestTopic(t, `compacted-${what}`, {
      config: { 'cleanup.policy': 'compact', 'min.cleanable.dirty.ratio': '0.01', 'segment.bytes': String(1024 * 1024) },
    })
    // Two of these do not fit into one segment: each begins a new one, and the compacted segments are not merged.
    const filler = (key: string) => produceTo(topic, [{ key, value: Buffer.alloc(700 * 1024) }])
    const overwrite = (value: string) => Array.from({ length: overwritten }, (_, index) => ({ key: `again-${index}`, value }))
    await filler('first')
    const producer = createKafka(testConnection()).producer({ idempotent: isIdempotent, createPartitioner: () => () => 0 })
    await producer.connect()
    t.after(() => producer.disconnect())
    await producer.send({ topic, messages: [...(isIdempotent ? [] : [{ key: 'kept', value: 'kept' }]), ...overwrite('old')] })
    await filler('second')
    await produceTo(topic, overwrite('new'))
    await filler('third')
    const last = Number((await withAdmin((admin) => admin.fetchTopicOffsets(topic)))[0]!.high) - 1
    await until(async () => {
      const groupId = testTopic('compacted')
      deleteGroupAfter(t, groupId)
      const offsets = await readAll(topic, groupId, last)
      return !offsets.includes(overwritten - 1)
    }, { deadlineMs: 40_000, intervalMs: 300, message: 'compaction' })
  })
}

/** Offsets seen by a consumer from the beginning until it has passed `last`; rejects when it stands still. */
async function readAll(topic: string, groupId: string, last: number): Promise<number[]> {
  const consumer = createKafka(testConnection()).consumer({ groupId, maxWaitTimeInMs: 50 })
  const offsets: number[] = []
  let fetches = 0
  consumer.on(consumer.events.FETCH, () => { fetches++ })
  await consumer.connect()
  try {
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => { offsets.push(Number(message.offset)) } })
    await until(() => offsets.at(-1) === last || fetches > 100, { message: 'the last record' })
    assert.equal(offsets.at(-1), last, `stands still after ${offsets.at(-1)}: ${fetches} fetches`)
    return offsets
  } finally {
    await consumer.disconnect()
  }
}

test('a batch of more records than fit on the stack is read', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'large-batch')
  const count = 150_000
  const gateway = createProduceGateway(testConnection(), 'gzip')
  t.after(() => gateway.close())
  await gateway.connect()
  const leader = (await gateway.topicViews(new Set([topic]))).get(topic)!.leaders![0]!
  const value = Buffer.from('{"id":"1"}')
  const [answer] = await gateway.produce(leader, [{ topic, partition: 0, messages: Array.from({ length: count }, () => ({ key: null, value })) }])
  assert.equal(answer?.error, null)
  let seen = 0
  const consumer = createKafka(testConnection()).consumer({ groupId: testTopic('large-batch'), maxWaitTimeInMs: 50 })
  const crashed = Promise.withResolvers<Error>()
  consumer.on(consumer.events.CRASH, ({ payload }) => crashed.resolve(payload.error))
  t.after(() => consumer.disconnect())
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatch: async ({ batch }) => { seen += batch.messages.length } })
  const whole = until(() => seen === count, { message: () => `all records, not only ${seen}` })
  assert.equal(await Promise.race([whole, crashed.promise]), true)
})

test('idle connections arm no timers', { skip }, async (t) => {
  const producer = createKafka(testConnection()).producer({ createPartitioner: () => () => 0 })
  await producer.connect()
  t.after(() => producer.disconnect())
  const topic = await createTestTopic(t, 'timers')
  await producer.send({ topic, messages: [{ value: 'x' }] })
  const original = globalThis.setTimeout
  const armed: number[] = []
  // What kafkajs calls: the storm is its timers of 1 ms, each arming the next.
  globalThis.setTimeout = ((callback: () => void, delayMs: number) => {
    armed.push(delayMs)
    return original(callback, delayMs)
  }) as typeof setTimeout
  t.after(() => { globalThis.setTimeout = original })
  await new Promise((resolve) => original(resolve, 200))
  assert.ok(armed.length < 5, `${armed.length} timers in 200 ms: ${armed.slice(0, 5).join(', ')}`)
})
