import { randomUUID } from 'node:crypto'
import type { EachBatchPayload } from 'kafkajs'
import { stickyAssigner } from './assignment.ts'
import { createKafka, type KafkaConnection } from './client.ts'
import { toHeaderList } from './consumed-record.ts'
import { deleteGroup } from './delete-group.ts'
import { disconnectConsumer } from './disconnect.ts'
import { withMembershipHooks, type FetchedBatch, type GroupInternals } from './membership.ts'
import { keyOf, listOffsets } from './start-position.ts'

export type TableRecord = {
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  /** null: the key is deleted. */
  readonly value: Buffer | null
  readonly headers: readonly { readonly name: string; readonly value: Buffer }[]
  /** Epoch ms, broker time. */
  readonly timestamp: number
}

/** A compacted topic followed from its beginning by this process alone. */
export type Table = {
  /** Everything that was in the topic has been applied, at least once. */
  isCaughtUp(): boolean
  /**
   * performance.now() ms: the table holds everything that was in the topic at that time; -Infinity before it has caught up.
   * It is when a fetch began that has returned, whose records are applied, and that reached the high watermark of its own response.
   */
  freshAsOf(): number
  /** Resolves once `freshAsOf()` is at least `since` (performance.now() ms); rejects when the table is closed. */
  waitFresh(since: number): Promise<void>
  ageMs(): number
  /** Date.now() ms of the last heartbeat the coordinator took. */
  lastHeartbeatAt(): number | null
  close(): Promise<void>
}

export type TableOptions = {
  readonly connection: KafkaConnection
  readonly topic: string
  /** The reader's group is this and a random part: never shared, deleted on close. */
  readonly groupPrefix: string
  /** Applies one record; in offset order within a partition. Must not throw. */
  readonly onRecord: (record: TableRecord) => void
  /** The topic was made anew: forget what came from this partition; its records follow from the first. */
  readonly onReset: (partition: number) => void
  readonly onFailed: (error: Error) => void
}

type Follower = {
  position: number
  freshAsOf: number
  /** Epoch ms, when the youngest record before `position` was written. */
  lastAt: number
  /** Position and its `lastAt` when the topic was last known to be the one it was; null before the first. */
  known: { readonly position: number; readonly lastAt: number } | null
  /** performance.now() ms: what was asked for before is of another position, and no longer counts. */
  startedOverAt: number
}

const newFollower = (): Follower => ({ position: 0, freshAsOf: -Infinity, lastAt: -Infinity, known: null, startedOverAt: -Infinity })

/** How soon it is seen that a topic was made anew where offsets do not tell, ms. */
const lookIntervalMs = 5_000

/** Starts following; resolves when the group is joined, not yet caught up (see `waitFresh`). */
export async function startTable(options: TableOptions): Promise<Table> {
  const { connection, topic, onRecord, onReset } = options
  const groupId = `${options.groupPrefix}.${randomUUID()}`
  const followers = new Map<number, Follower>()
  const begunAtByBatch = new WeakMap<object, number>()
  let waiters: { since: number; resolve: () => void; reject: (error: Error) => void }[] = []
  let heartbeatAt: number | null = null
  let group: GroupInternals | null = null

  const freshAsOf = (): number => {
    let oldest = Infinity
    for (const follower of followers.values()) oldest = Math.min(oldest, follower.freshAsOf)
    return followers.size === 0 ? -Infinity : oldest
  }

  function proved(follower: Follower, begunAt: number): void {
    follower.freshAsOf = Math.max(follower.freshAsOf, begunAt)
    follower.known ??= { position: follower.position, lastAt: follower.lastAt }
    if (waiters.length === 0) return
    const fresh = freshAsOf()
    const waiting = waiters
    waiters = waiting.filter(({ since }) => since > fresh)
    for (const { since, resolve } of waiting) if (since <= fresh) resolve()
  }

  function startOver(partition: number, follower: Follower, startedOverAt: number): void {
    connection.log('warn', 'the topic was made anew: the table is read again', { topic, partition })
    Object.assign(follower, newFollower(), { startedOverAt })
    onReset(partition)
  }

  /**
   * A topic made anew may have grown to our position or past it before the next fetch, so that offsets tell nothing. But all that is in it
   * is younger than what was known of the old one, and in a topic that is still the same no such record is before that position.
   */
  async function lookWhetherMadeAnew(): Promise<void> {
    const present = group
    if (!present) return
    await Promise.all([...followers].map(async ([partition, follower]) => {
      const { known, position, lastAt } = follower
      if (known === null) return
      if (known.position === 0) {
        follower.known = { position, lastAt }
        return
      }
      const younger = await listOffsets(present, [{ topic, partitions: [partition] }], { at: known.lastAt + 1 })
      if (followers.get(partition) !== follower || follower.known !== known) return
      follower.known = { position, lastAt }
      if ((younger.get(keyOf(topic, partition)) ?? known.position) >= known.position) return
      // A fetch from the old position is nearly always under way: taken for this topic's, it would hide all that is before it.
      startOver(partition, follower, performance.now())
      present.offsetManager?.resolveOffset({ topic, partition, offset: '-1' })
    }))
  }

  async function beforeJoin(): Promise<void> {}

  async function afterJoin(joined: GroupInternals): Promise<void> {
    group = joined
    const assigned = new Set(joined.assigned().flatMap((one) => one.partitions))
    for (const partition of followers.keys()) {
      if (assigned.has(partition)) continue
      // It is not there any more; were it to come back, it would be read from its beginning.
      followers.delete(partition)
      onReset(partition)
    }
    for (const partition of assigned) {
      const follower = followers.get(partition)
      if (!follower) followers.set(partition, newFollower())
      // Without commits a join would set the position back to the first record.
      else if (follower.position > 0) joined.offsetManager?.resolveOffset({ topic, partition, offset: String(follower.position - 1) })
    }
  }

  function onFetch(begunAt: number, batches: readonly FetchedBatch[]): void {
    for (const batch of batches) {
      const follower = followers.get(batch.partition)
      if (!follower || begunAt < follower.startedOverAt) continue
      const fetchedOffset = Number(batch.fetchedOffset)
      if (fetchedOffset < follower.position) startOver(batch.partition, follower, begunAt)
      follower.position = fetchedOffset
      begunAtByBatch.set(batch, begunAt)
      if (fetchedOffset >= Number(batch.highWatermark)) proved(follower, begunAt)
    }
  }

  async function eachBatch({ batch, resolveOffset }: EachBatchPayload): Promise<void> {
    const follower = followers.get(batch.partition)
    const begunAt = begunAtByBatch.get(batch)
    if (!follower || begunAt === undefined || begunAt < follower.startedOverAt) return
    for (const message of batch.messages) {
      const offset = Number(message.offset)
      if (offset < follower.position) continue
      const timestamp = Number(message.timestamp)
      follower.lastAt = Math.max(follower.lastAt, timestamp)
      onRecord({ partition: batch.partition, offset, key: message.key, value: message.value, headers: toHeaderList(message.headers), timestamp })
    }
    const last = batch.messages.at(-1)
    if (last) resolveOffset(last.offset)
    follower.position = Number(batch.lastOffset()) + 1
    if (follower.position >= Number(batch.highWatermark)) proved(follower, begunAt)
  }

  const owned = () => ({ generation: -1, owned: [] })
  const consumer = createKafka(connection).consumer({
    groupId,
    partitionAssigners: [withMembershipHooks(stickyAssigner(owned), { beforeJoin, afterJoin, onFetch, log: connection.log })],
    sessionTimeout: 30_000,
    heartbeatInterval: 3_000,
    maxBytesPerPartition: 1024 * 1024,
    minBytes: 1,
    maxWaitTimeInMs: 100,
    retry: { initialRetryTime: 200, maxRetryTime: 5000, retries: 1000 },
  })
  consumer.on(consumer.events.HEARTBEAT, () => { heartbeatAt = Date.now() })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) options.onFailed(payload.error)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, partitionsConsumedConcurrently: 12, eachBatch })

  const timer = setInterval(() => {
    lookWhetherMadeAnew().catch((error: unknown) => connection.log('debug', 'offsets by time could not be read', { topic, message: String(error) }))
  }, lookIntervalMs)

  let closing: Promise<void> | null = null
  return {
    isCaughtUp: () => freshAsOf() > -Infinity,
    freshAsOf,
    waitFresh: (since) => freshAsOf() >= since
      ? Promise.resolve()
      : new Promise((resolve, reject) => { waiters.push({ since, resolve, reject }) }),
    ageMs: () => performance.now() - freshAsOf(),
    lastHeartbeatAt: () => heartbeatAt,
    close: () => (closing ??= (async () => {
      clearInterval(timer)
      for (const { reject } of waiters) reject(new Error(`the table of ${topic} was closed`))
      waiters = []
      await disconnectConsumer(consumer)
      await deleteGroup(connection, groupId)
    })()),
  }
}
