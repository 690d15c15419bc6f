import type { Consumer as KafkaConsumer, EachBatchPayload, Kafka } from 'kafkajs'
import { createOffsetLedger } from '../domain/offset-ledger.ts'
import { stickyAssigner, type TopicPartition } from './assignment.ts'
import { createKafka, type KafkaConnection } from './client.ts'
import { createCommitter, type Committer } from './committer.ts'
import { toConsumedRecord, weightOf } from './consumed-record.ts'
import { disconnectConsumer } from './disconnect.ts'
import { heartbeating, withMembershipHooks, type FetchedBatch, type GroupInternals } from './membership.ts'
import { stateOf, type Lease, type PartitionState, PartitionWindow } from './partition-window.ts'
import { openAccounts } from './partition-accounts.ts'
import { createRoom } from './room.ts'
import { keyOf, type StartPosition } from './start-position.ts'

/** What a service does with its partitions. None of these may throw for a record's sake. */
export type ConsumerHandlers = {
  /** Takes one record in hand; synchronous, and offsets of a partition come in order. */
  onRecord(lease: Lease): void
  /** Start nothing new, let what is nearly through finish, write what the next owner must know. The commit follows it. */
  beforeJoin?(): Promise<void>
  /**
   * After the join and before the first fetch. Starting is allowed again once this has returned. Also when a topic was made anew under
   * its owner: its partition is lost and gained at once then.
   */
  afterJoin?(change: {
    readonly gained: readonly TopicPartition[]
    readonly lost: readonly TopicPartition[]
    /** Partitions of each topic in all. */
    readonly counts: ReadonlyMap<string, number>
  }): Promise<void>
  /** Partitions that were taken away; their leases are no longer held. */
  onLost?(partitions: readonly TopicPartition[]): void
  /** The consumer is dead for good: the process must end. */
  onFailed(error: Error): void
}

export type ConsumerOptions = {
  readonly connection: KafkaConnection
  readonly groupId: string
  readonly topics: readonly string[]
  readonly handlers: ConsumerHandlers
  /** Unfinished bytes of all partitions at which reading stops. */
  readonly windowBytes: number
  /** The same for one partition; default: no bound of its own. */
  readonly partitionWindowBytes?: number
  /** Reading goes on below this share of the bound. */
  readonly refillShare?: number
  readonly maxBytesPerPartition?: number
  /** How long a broker holds a fetch that finds nothing, ms: fewer idle fetches against slower refills and heartbeats; default 100. */
  readonly maxWaitMs?: number
  /** Where partitions without a committed offset begin; default: the earliest record, and no tag in the commits. */
  readonly startPosition?: StartPosition
  readonly sessionTimeoutMs?: number
  readonly commitIntervalMs?: number
}

export type Consumer = {
  /** Ready: joined, and nothing is being handed over. */
  isJoined(): boolean
  /** Date.now() ms of the last heartbeat the coordinator took; null before the first. */
  lastHeartbeatAt(): number | null
  joins(): number
  partitions(): PartitionState[]
  unfinishedBytes(): number
  /** No further record is handed out; partitions stay held and commits go on. */
  stopTaking(): void
  /** Commits what is done, leaves the group, disconnects. Drain first. Idempotent. */
  close(): Promise<void>
}

const roomWaitMs = 150
const heartbeatMs = 500

/**
 * Reads topics as one member of a group, with a window of unfinished records per partition: records complete in any order,
 * and what is committed is the lowest unfinished offset with the finished set above it in the commit's metadata.
 * @throws when the first join fails for good
 */
export async function startConsumer(options: ConsumerOptions): Promise<Consumer> {
  const { connection, groupId, topics, handlers, windowBytes } = options
  const { refillShare = 0.8, sessionTimeoutMs = 10_000 } = options
  const windows = new Map<string, PartitionWindow>()
  let group: GroupInternals | null = null
  let generation = -1
  let memberId: string | null = null
  let committer: Committer | null = null
  let unfinishedBytes = 0
  let isTaking = true
  let isJoined = false
  let joins = 0
  let heartbeatAt: number | null = null
  let closing: Promise<void> | null = null
  const room = createRoom()
  const isFull = (window: PartitionWindow): boolean =>
    unfinishedBytes >= windowBytes || window.unfinishedBytes >= (options.partitionWindowBytes ?? Infinity)
  const hasRefillRoom = (window: PartitionWindow): boolean =>
    unfinishedBytes < windowBytes * refillShare && window.unfinishedBytes < (options.partitionWindowBytes ?? Infinity) * refillShare

  const onFinished = (lease: Lease): void => {
    unfinishedBytes -= lease.weight
    room.wake()
    resumeWithRoom()
  }

  let pausedCount = 0
  function resumeWithRoom(): void {
    if (pausedCount === 0 || !isTaking || !group) return
    for (const window of windows.values()) {
      if (!window.isPaused || !hasRefillRoom(window)) continue
      window.isPaused = false
      window.movedAt = performance.now()
      pausedCount -= 1
      group.resume([{ topic: window.topic, partitions: [window.partition] }])
    }
  }

  async function eachBatch({ batch, heartbeat, pause, resolveOffset }: EachBatchPayload): Promise<void> {
    // Silent for so long, the coordinator may have given our partitions away: nothing is begun before it has answered.
    if (Date.now() - (heartbeatAt ?? 0) > sessionTimeoutMs / 2) await heartbeat()
    const window = windows.get(keyOf(batch.topic, batch.partition))
    // Anything else is overtaken: by a join, or by a fetch from the partition's new leader. To take it would pass over what lies before.
    if (!window || Number((batch as unknown as FetchedBatch).fetchedOffset) !== window.position) return
    if (!isTaking) {
      hold(window, pause)
      return
    }
    for (const message of batch.messages) {
      const record = toConsumedRecord(batch.topic, batch.partition, message)
      const weight = weightOf(record)
      const lease = window.take(record, weight)
      if (!lease) continue
      unfinishedBytes += weight
      handlers.onRecord(lease)
    }
    window.ledger.seen(Number(batch.lastOffset()))
    window.moveTo(Number(batch.lastOffset()) + 1)
    // Before anything that can throw: a batch that stays unresolved is fetched again, and would look like offsets going backwards.
    const last = batch.messages.at(-1)
    if (last) resolveOffset(last.offset)
    // A fetcher waits for the handlers of all its partitions: a short wait saves the fetch after a pause, a long one stalls the others.
    const waitUntil = performance.now() + roomWaitMs
    while (isFull(window) && window.isHeld && isTaking && performance.now() < waitUntil) {
      await room.wait(waitUntil - performance.now())
      await heartbeat()
    }
    if (isFull(window)) hold(window, pause)
  }

  // Pausing is safe only in here: from elsewhere kafkajs throws away what it has fetched already.
  function hold(window: PartitionWindow, pause: () => void): void {
    if (!window.isHeld || window.isPaused) return
    window.isPaused = true
    pausedCount += 1
    pause()
  }

  function drop(lost: readonly PartitionWindow[]): void {
    if (lost.length === 0) return
    for (const window of lost) {
      window.isHeld = false
      windows.delete(keyOf(window.topic, window.partition))
      unfinishedBytes -= window.unfinishedBytes
      if (window.isPaused) pausedCount -= 1
    }
    handlers.onLost?.(lost.map(({ topic, partition }) => ({ topic, partition })))
  }

  async function beforeJoin(joining: GroupInternals): Promise<void> {
    isJoined = false
    if (joining.memberId === null && windows.size > 0) {
      // Expelled: others may own our partitions already, so nothing may be committed and nothing counts as kept.
      connection.log('warn', 'expelled from the consumer group; its partitions are dropped', { groupId })
      committer?.stop()
      drop([...windows.values()])
      return
    }
    if (joins === 0) return
    await handlers.beforeJoin?.()
    await committer?.commitLast()
  }

  async function afterJoin(joined: GroupInternals): Promise<void> {
    group = joined
    const newGeneration = joined.generationId ?? -1
    if (generation >= 0 && (newGeneration !== generation + 1 || joined.memberId !== memberId)) {
      // A generation in between, or another member in our place: its owners may have read and committed what we held.
      drop([...windows.values()])
    }
    generation = newGeneration
    memberId = joined.memberId
    const assigned = joined.assigned()
    const lost = [...windows.values()].filter((window) =>
      !assigned.some(({ topic, partitions }) => topic === window.topic && partitions.includes(window.partition)))
    drop(lost)
    const gained = await openMissingWindows(joined, assigned)
    for (const window of windows.values()) {
      window.isPaused = false
      const { topic, partition, position } = window
      if (position !== null) joined.offsetManager?.resolveOffset({ topic, partition, offset: String(position - 1) })
      // A batch that was still in hand may have moved it on for the window that was dropped.
      else joined.offsetManager?.resetOffset({ topic, partition })
    }
    pausedCount = 0
    joined.resume(joined.paused())
    await heartbeating(joined, handlers.afterJoin?.({ gained, lost: lost.map(({ topic, partition }) => ({ topic, partition })), counts: countsIn(joined) }))
    committer?.stop()
    if (closing) return
    committer = createCommitter({
      group: joined, windows: () => windows.values(), log: connection.log, intervalMs: options.commitIntervalMs ?? 100,
    })
    isJoined = true
    joins += 1
  }

  async function openMissingWindows(joined: GroupInternals, assigned: ReturnType<GroupInternals['assigned']>): Promise<TopicPartition[]> {
    const fresh = assigned
      .map(({ topic, partitions }) => ({ topic, partitions: partitions.filter((partition) => !windows.has(keyOf(topic, partition))) }))
      .filter(({ partitions }) => partitions.length > 0)
    if (fresh.length === 0) return []
    const accounts = await openAccounts(joined, fresh, options.startPosition ?? null, connection.log)
    for (const { topic, partition, tag, ledger } of accounts) {
      windows.set(keyOf(topic, partition), new PartitionWindow({ topic, partition, tag, ledger, onFinished }))
    }
    return accounts.map(({ topic, partition }) => ({ topic, partition }))
  }

  const countsIn = ({ cluster }: GroupInternals): Map<string, number> =>
    new Map(topics.map((topic) => [topic, cluster.findTopicPartitionMetadata(topic).length]))

  async function onFetch(_begunAt: number, batches: readonly FetchedBatch[]): Promise<void> {
    const anew: TopicPartition[] = []
    for (const batch of batches) {
      const { topic, partition } = batch
      let window = windows.get(keyOf(topic, partition))
      if (!window || !group) continue
      const fetchedOffset = Number(batch.fetchedOffset)
      if (window.position !== null && fetchedOffset < window.position) {
        // An answer that a fetch from the partition's new leader has overtaken: kafkajs itself has moved on.
        if (Number(group.offsetManager?.nextOffset(topic, partition)) >= window.position) continue
        connection.log('warn', 'offsets went backwards: the topic was made anew', { topic, partition, position: window.position, fetchedOffset })
        drop([window])
        const ledger = createOffsetLedger({ committedOffset: null, metadata: null })
        window = new PartitionWindow({ topic, partition, tag: window.tag, onFinished, ledger })
        windows.set(keyOf(topic, partition), window)
        anew.push({ topic, partition })
      }
      window.highWatermark = Number(batch.highWatermark)
      window.moveTo(fetchedOffset)
      if (fetchedOffset >= window.highWatermark) window.movedAt = performance.now()
    }
    if (anew.length === 0 || !group) return
    resumeWithRoom()
    await heartbeating(group, handlers.afterJoin?.({ gained: anew, lost: anew, counts: countsIn(group) }))
  }

  const kafka: Kafka = createKafka(connection)
  const assigner = stickyAssigner(() => ({
    generation, owned: [...windows.values()].map(({ topic, partition }) => ({ topic, partition })),
  }))
  const consumer: KafkaConsumer = kafka.consumer({
    groupId,
    partitionAssigners: [withMembershipHooks(assigner, { beforeJoin, afterJoin, onFetch, log: connection.log })],
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: 20_000,
    heartbeatInterval: heartbeatMs,
    maxBytesPerPartition: options.maxBytesPerPartition ?? 256 * 1024,
    minBytes: 1,
    maxWaitTimeInMs: options.maxWaitMs ?? 100,
    retry: { initialRetryTime: 200, maxRetryTime: 5000, retries: 1000 },
  })
  consumer.on(consumer.events.HEARTBEAT, () => { heartbeatAt = Date.now() })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    isJoined = false
    if (!payload.restart) handlers.onFailed(payload.error)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [...topics], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    // A handler whose partition has room returns at once; only full ones wait, and beyond this many they wait in turns.
    partitionsConsumedConcurrently: 48,
    eachBatch,
  })

  const stopTaking = (): void => { isTaking = false }
  return {
    isJoined: () => isJoined,
    lastHeartbeatAt: () => heartbeatAt,
    joins: () => joins,
    unfinishedBytes: () => unfinishedBytes,
    partitions: () => [...windows.values()].map(stateOf),
    stopTaking,
    close: () => (closing ??= (async () => {
      stopTaking()
      await committer?.commitLast()
      await disconnectConsumer(consumer)
      drop([...windows.values()])
    })()),
  }
}
