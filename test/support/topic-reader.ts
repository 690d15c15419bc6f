import type { IHeaders, KafkaMessage } from 'kafkajs'
import { createKafka } from '../../shared/kafka/client.ts'
import { testConnection, testTopic, withAdmin } from './kafka.ts'
import { until } from './until.ts'

export type ReadRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: IHeaders
  /** A header's text, of its last value when it was repeated; undefined when the record has none. */
  header(name: string): string | undefined
  /** Epoch ms. */
  readonly timestamp: number
}

/**
 * Everything that is in a topic now, by partition and offset. Reads with a group of its own, deleted afterwards; independent of our own
 * consumer and table, so that those can be tested against it.
 */
export async function readTopic(topic: string, { deadlineMs = 20_000, connection = testConnection() } = {}): Promise<ReadRecord[]> {
  const ends = await withAdmin((admin) => admin.fetchTopicOffsets(topic), connection)
  const missing = new Map(ends.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, Number(high)]))
  if (missing.size === 0) return []

  const groupId = testTopic('read-topic')
  const consumer = createKafka(connection).consumer({ groupId, maxWaitTimeInMs: 100, allowAutoTopicCreation: false })
  const records: ReadRecord[] = []
  // By this event and not in the handler: a batch left empty by compaction never reaches the handler.
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
    if (Number(lastOffset) + 1 >= (missing.get(partition) ?? Infinity)) missing.delete(partition)
  })
  await consumer.connect()
  try {
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        for (const message of batch.messages) records.push(readRecord(topic, batch.partition, message))
      },
    })
    await until(() => missing.size === 0, {
      deadlineMs, message: () => `the end of ${topic}, partitions ${[...missing.keys()].join(', ')} (${records.length} records read)`,
    })
  } finally {
    await consumer.disconnect()
    await withAdmin((admin) => admin.deleteGroups([groupId]), connection)
  }
  return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
}

function readRecord(topic: string, partition: number, message: KafkaMessage): ReadRecord {
  const { key, value, headers = {}, offset, timestamp } = message
  return {
    topic, partition, offset: Number(offset), key, value, headers, timestamp: Number(timestamp),
    header: (name) => {
      const given = headers[name]
      return (Array.isArray(given) ? given.at(-1) : given)?.toString()
    },
  }
}
