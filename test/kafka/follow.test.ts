import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { follow } from '../../shared/kafka/follow.ts'
import { readGroupState } from '../../shared/kafka/group-state.ts'
import { startConsumer } from '../../shared/kafka/consumer.ts'
import type { StartPosition } from '../../shared/kafka/start-position.ts'
import { createTestTopic, deleteGroupAfter, kafkaForTests, produceTo, testConnection, testTopic, withAdmin } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

/** One request each: of one for several partitions, those that went well would be written again when another partition was not ready. */
async function produceEach(topic: string, messages: readonly { readonly partition: number; readonly value: string }[]): Promise<void> {
  for (const message of messages) await produceTo(topic, [message])
}

async function read(t: TestContext, topic: string, from: StartPosition): Promise<{ readonly values: string[]; readonly groupPrefix: string; close(): Promise<void> }> {
  const values: string[] = []
  const groupPrefix = testTopic('follow')
  const follower = await follow({
    connection: testConnection(), topics: [topic], groupPrefix, from,
    onRecord: ({ value }) => values.push(String(value)), onFailed: assert.fail,
  })
  t.after(follower.close)
  return { values, groupPrefix, close: follower.close }
}

test('a follower begins where it is told, sees all that is written after it resolved, and leaves no group', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'follow', { partitions: 3 })
  await produceEach(topic, [0, 1, 2].map((partition) => ({ partition, value: `old ${partition}` })))
  const between = await withAdmin(async (admin) => {
    const { timestamp } = await until(async () => {
      const offsets = await admin.fetchTopicOffsetsByTimestamp(topic, 0)
      return offsets.every(({ offset }) => Number(offset) === 0) && { timestamp: Date.now() + 50 }
    })
    return timestamp
  })
  await until(() => Date.now() > between + 50)
  const [latest, earliest, late] = await Promise.all([read(t, topic, 'latest'), read(t, topic, 'earliest'), read(t, topic, { at: between })])
  await produceEach(topic, [0, 1, 2].map((partition) => ({ partition, value: `new ${partition}` })))
  await until(() => latest.values.length === 3 && earliest.values.length === 6 && late.values.length === 3, {
    message: () => `all to be read: ${JSON.stringify([latest.values, earliest.values, late.values])}`,
  })
  assert.deepEqual(latest.values.toSorted(), ['new 0', 'new 1', 'new 2'])
  assert.deepEqual(late.values.toSorted(), ['new 0', 'new 1', 'new 2'])
  assert.deepEqual(earliest.values.toSorted(), ['new 0', 'new 1', 'new 2', 'old 0', 'old 1', 'old 2'])

  await Promise.all([latest.close(), earliest.close(), late.close()])
  const { groups } = await withAdmin((admin) => admin.listGroups())
  const prefixes = [latest, earliest, late].map(({ groupPrefix }) => groupPrefix)
  assert.deepEqual(groups.filter(({ groupId }) => prefixes.some((prefix) => groupId.startsWith(prefix))), [])
})

test('the state of a group: members, what is not done, and progress', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'group-state', { partitions: 2 })
  const groupId = testTopic('group-state')
  deleteGroupAfter(t, groupId)
  await produceEach(topic, [0, 0, 0, 1].map((partition) => ({ partition, value: 'x' })))
  const state = () => withAdmin((admin) => readGroupState(admin, groupId, [topic]))
  assert.deepEqual(await state(), { members: 0, lag: 4, progress: 0, uncommitted: 2 })

  let finishLast = (): void => {}
  const consumer = await startConsumer({
    connection: testConnection(), groupId, topics: [topic], windowBytes: 1e6,
    handlers: {
      onRecord: (lease) => {
        if (lease.record.partition === 0 && lease.record.offset === 2) finishLast = () => lease.done()
        else lease.done()
      },
      onFailed: assert.fail,
    },
  })
  t.after(consumer.close)
  const behind = await until(async () => {
    const found = await state()
    return found.lag === 1 && found
  })
  assert.deepEqual(behind, { members: 1, lag: 1, progress: 3, uncommitted: 0 })
  finishLast()
  await until(async () => (await state()).lag === 0)
})
