import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAdmin } from '../../shared/kafka/client.ts'
import { startConsumer } from '../../shared/kafka/consumer.ts'
import { createTrimmer, trimBehind, type Trimmed } from '../../shared/kafka/trim.ts'
import { createTestTopic, deleteGroupAfter, kafkaForTests, produceTo, testConnection, testTopic } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()
const hourMs = 3_600_000

test('records are deleted up to the committed offset, in owned partitions, and only when they are old enough', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'trim', { partitions: 3 })
  const groupId = testTopic('trim')
  const admin = await createAdmin(testConnection(), { retries: 5 })
  await produceTo(topic, Array.from({ length: 30 }, (_, index) => ({ value: `${index}`, partition: index % 3 })))
  // Done up to offset 6 of each partition; 8 is done as well, but 7 is not.
  const consumer = await startConsumer({
    connection: testConnection(), groupId, topics: [topic], windowBytes: 1_000_000,
    handlers: {
      onRecord: (lease) => { if (lease.record.offset < 7 || lease.record.offset === 8) lease.done() },
      onFailed: (error) => { throw error },
    },
  })
  t.after(() => consumer.close())
  t.after(() => admin.close())
  deleteGroupAfter(t, groupId)
  const committed = async (): Promise<(string | undefined)[]> =>
    (await admin.fetchOffsets({ groupId, topics: [topic] }))[0]?.partitions.map(({ offset }) => offset) ?? []
  await until(async () => (await committed()).every((offset) => offset === '7'))

  const lows = async (): Promise<string[]> => (await admin.fetchTopicOffsets(topic)).sort((a, b) => a.partition - b.partition).map(({ low }) => low)
  assert.deepEqual(await trimBehind(admin, { topic, groupId, partitions: [0, 1] }, Date.now() - hourMs), [])
  assert.deepEqual(await lows(), ['0', '0', '0'])
  assert.deepEqual(await trimBehind(admin, { topic, groupId, partitions: [0, 1] }, Date.now() + hourMs), [
    { topic, partition: 0, records: 7 }, { topic, partition: 1, records: 7 },
  ])
  assert.deepEqual(await lows(), ['7', '7', '0'])
  assert.deepEqual(await trimBehind(admin, { topic, groupId, partitions: [0, 1] }, Date.now() + hourMs), [])

  const trimmed: Trimmed[] = []
  const trimmer = createTrimmer({
    admin, targets: () => [{ topic: testTopic('gone'), groupId, partitions: [0] }, { topic, groupId, partitions: [2] }],
    now: () => Date.now() + hourMs, keepMs: 0, intervalMs: 10, log: () => undefined,
    onTrimmed: (_target, some) => trimmed.push(...some),
  })
  await until(() => trimmed.length > 0, { deadlineMs: 30_000, message: 'a trim, although another topic does not exist' })
  await trimmer.close()
  assert.deepEqual(await lows(), ['7', '7', '7'])
})

test('a group that has committed nothing keeps everything', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'trim')
  const admin = await createAdmin(testConnection(), { retries: 5 })
  t.after(() => admin.close())
  await produceTo(topic, [{ value: 'x' }])
  assert.deepEqual(await trimBehind(admin, { topic, groupId: testTopic('none'), partitions: [0] }, Date.now() + hourMs), [])
})
