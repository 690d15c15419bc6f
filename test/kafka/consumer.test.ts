import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createAdmin } from '../../shared/kafka/client.ts'
import { startConsumer, type Consumer, type ConsumerOptions } from '../../shared/kafka/consumer.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import { createTestTopic, kafkaForTests, produceTo as produce, testConnection, testTopic } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'

const skip = kafkaForTests().skip

/** A consumer that collects what it is given; leases stay unfinished until the test says so. */
async function collect(t: TestContext, topics: string[], options: Partial<ConsumerOptions> & { groupId: string }) {
  const leases: Lease[] = []
  const lost: number[] = []
  const failures: Error[] = []
  const consumer: Consumer = await startConsumer({
    connection: testConnection(),
    topics,
    windowBytes: 64 * 1024 * 1024,
    ...options,
    handlers: {
      onRecord: (lease) => { leases.push(lease) },
      onLost: (partitions) => { lost.push(...partitions.map(({ partition }) => partition)) },
      onFailed: (error) => { failures.push(error) },
      ...options.handlers,
    },
  })
  t.after(() => consumer.close())
  const values = (): string[] => leases.map(({ record }) => String(record.value))
  return { consumer, leases, lost, failures, values }
}

const groupName = (): string => testTopic('consumer')
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => ({ value: String(from + index), partition: 0 }))

test('what finished above an unfinished record is not given again after a restart', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'consumer', { partitions: 1 })
  await produce(topic, numbered(0, 10))
  const groupId = groupName()
  const first = await collect(t, [topic], { groupId })
  await until(() => first.leases.length === 10)
  for (const index of [0, 1, 3, 4, 7]) first.leases[index]?.done()
  await first.consumer.close()

  const second = await collect(t, [topic], { groupId })
  await until(() => second.leases.length === 5)
  await produce(topic, numbered(10, 11))
  await until(() => second.values().includes('10'))
  assert.deepEqual(second.values(), ['2', '5', '6', '8', '9', '10'])
})

test('the committed offset is the lowest unfinished one while the consumer runs', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'consumer', { partitions: 1 })
  await produce(topic, numbered(0, 6))
  const groupId = groupName()
  const { leases } = await collect(t, [topic], { groupId })
  const admin = await createAdmin(testConnection())
  t.after(() => admin.close())
  const committed = async (): Promise<string | undefined> => {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return found?.partitions[0]?.offset
  }
  await until(() => leases.length === 6)
  leases[5]?.done()
  leases[0]?.done()
  leases[1]?.done()
  await until(async () => (await committed()) === '2')
  leases[2]?.done()
  leases[3]?.done()
  leases[4]?.done()
  await until(async () => (await committed()) === '6')
})

test('reading stops at the window\'s bytes and goes on when there is room', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'consumer', { partitions: 2 })
  const value = 'x'.repeat(10_000)
  // Small batches: Kafka never gives less than one.
  for (let sent = 0; sent < 200; sent += 4) await produce(topic, Array.from({ length: 4 }, (_, index) => ({ value, partition: index % 2 })))
  const { consumer, leases } = await collect(t, [topic], { groupId: groupName(), windowBytes: 300_000, maxBytesPerPartition: 50_000 })
  await until(() => consumer.unfinishedBytes() >= 300_000)
  await until(() => leases.length >= 28)
  // The bound plus one fetch a partition is the most that can be in hand.
  let most = 0
  await until(() => {
    most = Math.max(most, consumer.unfinishedBytes())
    for (const lease of leases) lease.done()
    return leases.length === 200
  })
  assert.ok(most < 300_000 + 4 * 66_000, `${most} bytes in hand`)
  await until(() => consumer.unfinishedBytes() === 0)
})

test('a member that joins takes over without a repeat, one that leaves loses nothing', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'consumer', { partitions: 6 })
  const groupId = groupName()
  const seen: string[] = []
  const handlers = {
    onRecord: (lease: Lease) => {
      // Finishes a little later, as a request would.
      setTimeout(() => {
        if (!lease.isHeld) return
        seen.push(String(lease.record.value))
        lease.done()
      }, 5)
    },
    onFailed: (error: Error) => { throw error },
  }
  let stopped = false
  let sent = 0
  const producing = (async () => {
    while (!stopped) {
      await produce(topic, Array.from({ length: 20 }, () => ({ value: String(sent++), partition: sent % 6 })))
    }
  })()
  const first = await collect(t, [topic], { groupId, handlers: { ...handlers, beforeJoin: () => drained(first) } })
  await until(() => seen.length > 50)
  const second = await collect(t, [topic], { groupId, handlers: { ...handlers, beforeJoin: () => drained(second) } })
  await until(() => second.consumer.partitions().length === 3 && first.consumer.partitions().length === 3)
  const before = seen.length
  await until(() => seen.length > before + 100)
  await drained(first)
  await first.consumer.close()
  await until(() => second.consumer.partitions().length === 6)
  stopped = true
  await producing
  await until(() => new Set(seen).size === sent, { deadlineMs: 20_000 })
  // What was read but not finished may be given to the next owner again; what finished never.
  // Against the topic: kafkajs's own producer may store its first batch twice while leaders are elected.
  assert.equal(seen.length, (await readTopic(topic)).length)
})

async function drained(one: { consumer: Consumer } | undefined): Promise<void> {
  const deadline = performance.now() + 120
  while (one && one.consumer.unfinishedBytes() > 0 && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
}

test('a first start reads from the end, partitions added later from their beginning', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'consumer', { partitions: 2 })
  await produce(topic, [{ value: 'old-0', partition: 0 }, { value: 'old-1', partition: 1 }])
  const groupId = groupName()
  const first = await collect(t, [topic], { groupId, startPosition: 'latest' })
  await until(() => first.consumer.isJoined())
  await produce(topic, [{ value: 'new-0', partition: 0 }])
  await until(() => first.values().includes('new-0'))
  for (const lease of first.leases) lease.done()
  await first.consumer.close()
  assert.deepEqual(first.values(), ['new-0'])

  const admin = await createAdmin(testConnection())
  t.after(() => admin.close())
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  await until(async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0]?.partitions.length === 3)
  await produce(topic, [{ value: 'meanwhile-1', partition: 1 }, { value: 'added-2', partition: 2 }])
  const second = await collect(t, [topic], { groupId, startPosition: 'latest' })
  // The client that writes here may store a batch twice in a partition that is new.
  const read = (): string[] => [...new Set(second.values())].sort()
  await until(() => read().length === 2, { message: () => `both records; joined: ${second.consumer.isJoined()}, read: ${second.values().join(' ')}` })
  assert.deepEqual(read(), ['added-2', 'meanwhile-1'])
})

test('a topic made anew under a running consumer is read from its first record', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'consumer', { partitions: 1 })
  await produce(topic, numbered(0, 20))
  const gained: number[][] = []
  const leases: Lease[] = []
  const { consumer, lost } = await collect(t, [topic], {
    groupId: groupName(),
    handlers: {
      onRecord: (lease) => { leases.push(lease) },
      onFailed: (error) => { throw error },
      afterJoin: async (change) => { gained.push(change.gained.map(({ partition }) => partition)) },
    },
  })
  const values = (): string[] => leases.map(({ record }) => String(record.value))
  await until(() => leases.length === 20)
  const admin = await createAdmin(testConnection())
  t.after(() => admin.close())
  await admin.deleteTopics({ topics: [topic] })
  await until(async () => !(await admin.listTopics()).includes(topic))
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  await produce(topic, [{ value: 'anew', partition: 0 }])
  await until(() => values().includes('anew'), { deadlineMs: 40_000 })
  assert.ok(lost.includes(0), 'the leases of the old topic are abandoned')
  assert.equal(leases[0]?.isHeld, false)
  assert.deepEqual(gained.filter((partitions) => partitions.length > 0), [[0], [0]], 'what is lost so is gained again')
  for (const lease of leases) lease.done()
  await until(() => consumer.unfinishedBytes() === 0)
})
