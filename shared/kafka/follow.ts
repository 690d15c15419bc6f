import { randomUUID } from 'node:crypto'
import type { EachBatchPayload } from 'kafkajs'
import { stickyAssigner } from './assignment.ts'
import { createKafka, type KafkaConnection } from './client.ts'
import { toConsumedRecord, type ConsumedRecord } from './consumed-record.ts'
import { deleteGroup } from './delete-group.ts'
import { disconnectConsumer } from './disconnect.ts'
import { withMembershipHooks, type GroupInternals } from './membership.ts'
import { keyOf, listOffsets, type StartPosition } from './start-position.ts'

/** Topics read as they grow, by this process alone, nothing committed. */
export type Follower = {
  close(): Promise<void>
}

export type FollowOptions = {
  readonly connection: KafkaConnection
  readonly topics: readonly string[]
  /** The reader's group is this and a random part: never shared, deleted on close. */
  readonly groupPrefix: string
  readonly from: StartPosition
  /** In offset order within a partition; at least once. Must not throw. */
  readonly onRecord: (record: ConsumedRecord) => void
  /** The consumer is dead for good. */
  readonly onFailed: (error: Error) => void
}

/**
 * Resolves once every partition has its position: with `from: 'latest'`, whatever is written from then on is seen. Partitions that are
 * added meanwhile are read from their beginning. The topics must exist.
 */
export async function follow({ connection, topics, groupPrefix, from, onRecord, onFailed }: FollowOptions): Promise<Follower> {
  const groupId = `${groupPrefix}.${randomUUID()}`
  /** The next offset to be read. */
  const positions = new Map<string, number>()
  const placed = Promise.withResolvers<void>()
  let isFirstJoin = true

  async function afterJoin(group: GroupInternals): Promise<void> {
    const assigned = group.assigned()
    const starts = await listOffsets(group, assigned, isFirstJoin ? from : 'earliest')
    for (const { topic, partitions } of assigned) {
      for (const partition of partitions) {
        const key = keyOf(topic, partition)
        const position = positions.get(key) ?? starts.get(key) ?? 0
        positions.set(key, position)
        // Nothing is committed, so a join sets every position back; where 0 is meant, it is there already.
        if (position > 0) group.offsetManager?.resolveOffset({ topic, partition, offset: String(position - 1) })
      }
    }
    isFirstJoin = false
    placed.resolve()
  }

  async function eachBatch({ batch, resolveOffset }: EachBatchPayload): Promise<void> {
    const key = keyOf(batch.topic, batch.partition)
    for (const message of batch.messages) {
      if (Number(message.offset) < (positions.get(key) ?? 0)) continue
      onRecord(toConsumedRecord(batch.topic, batch.partition, message))
    }
    const last = batch.messages.at(-1)
    if (last) resolveOffset(last.offset)
    positions.set(key, Number(batch.lastOffset()) + 1)
  }

  const owned = () => ({ generation: -1, owned: [] })
  const consumer = createKafka(connection).consumer({
    groupId,
    partitionAssigners: [withMembershipHooks(stickyAssigner(owned), { beforeJoin: async () => {}, afterJoin, onFetch: () => {}, log: connection.log })],
    maxBytesPerPartition: 1024 * 1024,
    minBytes: 1,
    maxWaitTimeInMs: 100,
    retry: { initialRetryTime: 200, maxRetryTime: 5_000, retries: 1_000 },
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (payload.restart) return
    placed.reject(payload.error)
    onFailed(payload.error)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [...topics], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, partitionsConsumedConcurrently: 12, eachBatch })
  await placed.promise

  let closing: Promise<void> | null = null
  return {
    close: () => (closing ??= (async () => {
      await disconnectConsumer(consumer)
      await deleteGroup(connection, groupId)
    })()),
  }
}
