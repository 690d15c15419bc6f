import { createRequire } from 'node:module'
import type { PartitionAssigner } from 'kafkajs'
import { isRetriableKafkaError, type KafkaLog } from './client.ts'

/** What kafkajs's own ConsumerGroup offers and its types do not show. Offsets are decimal strings there. */
export type GroupInternals = {
  readonly groupId: string
  readonly memberId: string | null
  readonly generationId: number | null
  coordinator: Coordinator | null
  readonly cluster: ClusterInternals
  readonly offsetManager: OffsetManagerInternals | null
  readonly assigners: readonly object[]
  assigned(): readonly { readonly topic: string; readonly partitions: readonly number[] }[]
  paused(): readonly { readonly topic: string; readonly partitions: readonly number[] }[]
  resume(topicPartitions: readonly { topic: string; partitions?: readonly number[] }[]): void
  heartbeat(options: { interval: number }): Promise<void>
}

export type OffsetManagerInternals = {
  readonly generationId: number
  coordinator: Coordinator
  getCoordinator(): Promise<Coordinator>
  /** The next offset to be fetched, as a Long. */
  nextOffset(topic: string, partition: number): { toString(): string }
  resolveOffset(position: { topic: string; partition: number; offset: string }): void
  /** Goes back to the committed offset. */
  resetOffset(position: { topic: string; partition: number }): void
  commitOffsets(offsets: { topics: readonly TopicCommit[] }): Promise<void>
}

export type TopicCommit = {
  readonly topic: string
  readonly partitions: readonly { readonly partition: number; readonly offset: string; readonly metadata: string | null }[]
}

export type Coordinator = BrokerInternals & {
  offsetFetch(request: {
    groupId: string
    topics: readonly { topic: string; partitions: readonly { partition: number }[] }[]
  }): Promise<{ responses: readonly { topic: string; partitions: readonly FetchedOffset[] }[] }>
}

export type FetchedOffset = { readonly partition: number; readonly offset: string; readonly metadata: string | null }

export type ClusterInternals = {
  findGroupCoordinator(request: { groupId: string }): Promise<Coordinator>
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>
  refreshMetadata(): Promise<void>
  readonly brokerPool: { readonly brokers: Readonly<Record<string, BrokerInternals>> }
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[]
  fetchTopicsOffset(topics: readonly {
    topic: string
    partitions: readonly { partition: number }[]
    fromBeginning?: boolean
    fromTimestamp?: number
  }[]): Promise<readonly { topic: string; partitions: readonly { partition: number; offset: string }[] }[]>
}

type BrokerInternals = {
  readonly nodeId: string | number
  readonly connectionPool: { readonly pool: readonly { rejectRequests(error: unknown): void }[] }
  disconnect(): Promise<void>
}

/** One fetched partition, empty ones included. */
export type FetchedBatch = {
  readonly topic: string
  readonly partition: number
  readonly fetchedOffset: string
  readonly highWatermark: string
  readonly rawMessages: readonly unknown[]
  lastOffset(): string
}

export type MembershipHooks = {
  /** Before JoinGroup, while the partitions are still ours (unless the member was expelled: then memberId is null). */
  beforeJoin(group: GroupInternals): Promise<void>
  /** After SyncGroup and before the first fetch; a throw leads to another join. */
  afterJoin(group: GroupInternals): Promise<void>
  /** What a fetch begun at `begunAt` (performance.now(), ms) returned; not called when it failed, or when the group was joined meanwhile. */
  onFetch(begunAt: number, batches: readonly FetchedBatch[]): void | Promise<void>
  readonly log: KafkaLog
}

const hooksByAssigner = new WeakMap<object, MembershipHooks>()

/** An assigner factory for kafkajs whose consumer group calls `hooks`: the assigner object is how a group finds them. */
export function withMembershipHooks(assigner: PartitionAssigner, hooks: MembershipHooks): PartitionAssigner {
  installOnce()
  return (config) => {
    const made = assigner(config)
    hooksByAssigner.set(made, hooks)
    return made
  }
}

type GroupPrototype = {
  joinAndSync(this: GroupInternals): Promise<void>
  fetch(this: GroupInternals, nodeId: string): Promise<readonly FetchedBatch[]>
  heartbeat(this: GroupInternals, options: { interval: number }): Promise<void>
}

const rejoinPauseMs = 200
let isInstalled = false

/**
 * Wraps three methods of kafkajs's ConsumerGroup; groups without hooks behave as before.
 * kafkajs has no place of its own for work between "a rebalance begins" and JoinGroup, nor between SyncGroup and the first fetch.
 */
function installOnce(): void {
  if (isInstalled) return
  isInstalled = true
  const require = createRequire(import.meta.url)
  const { prototype } = require('kafkajs/src/consumer/consumerGroup') as { prototype: GroupPrototype }
  const { joinAndSync, fetch, heartbeat } = prototype

  const join = async (group: GroupInternals, hooks: MembershipHooks): Promise<void> => {
    joinsBegun.set(group, joinsBegunOf(group) + 1)
    await hooks.beforeJoin(group)
    for (;;) {
      await joinAndSync.call(group)
      try {
        return await hooks.afterJoin(group)
      } catch (error) {
        // The assignment is only usable with its offsets; whatever went wrong, joining again asks for all of it again.
        if (isFatal(error)) throw error
        hooks.log('warn', 'assigned partitions could not be taken up: the group is joined again', { groupId: group.groupId, error: String(error) })
        await new Promise((resolve) => setTimeout(resolve, rejoinPauseMs))
        await refreshMetadata(group, hooks)
      }
    }
  }

  prototype.joinAndSync = function () {
    const hooks = hooksOf(this)
    if (!hooks) return joinAndSync.call(this)
    // Where leaders move, each broker's fetcher joins for itself: two joins of one member at a time would undo each other.
    const joining = joins.get(this) ?? join(this, hooks).finally(() => joins.delete(this))
    joins.set(this, joining)
    return joining
  }

  prototype.fetch = async function (nodeId) {
    const hooks = hooksOf(this)
    if (!hooks) return fetch.call(this, nodeId)
    // A join settles positions anew, and one fetcher may join while those of other brokers are under way: they wait for it, and what
    // they asked for before it is not at the positions any more.
    await joins.get(this)?.catch(() => undefined)
    const joinsBefore = joinsBegunOf(this)
    const begunAt = performance.now()
    const batches = await fetch.call(this, nodeId).catch(async (error: unknown) => {
      await giveUpIfSilent(this, this.cluster.brokerPool.brokers[nodeId], error, hooks)
      throw error
    })
    if (joinsBegunOf(this) !== joinsBefore) return []
    await hooks.onFetch(begunAt, batches)
    return batches
  }

  prototype.heartbeat = async function (options) {
    const { coordinator } = this
    try {
      await heartbeat.call(this, options)
    } catch (error) {
      await giveUpIfSilent(this, coordinator, error, hooksOf(this))
      await refreshCoordinatorIfMoved(this, error).catch((cause: unknown) => {
        hooksOf(this)?.log('debug', 'group coordinator not found yet', { groupId: this.groupId, message: String(cause) })
      })
      throw error
    }
  }
}

/** Joins under way, and how many were begun, of each group with hooks. */
const joins = new WeakMap<GroupInternals, Promise<void>>()
const joinsBegun = new WeakMap<GroupInternals, number>()
const joinsBegunOf = (group: GroupInternals): number => joinsBegun.get(group) ?? 0

/** Only the member that leads its group reads metadata when it joins: any other would go on asking the former leader of a partition. */
async function refreshMetadata(group: GroupInternals, { log }: MembershipHooks): Promise<void> {
  try {
    await group.cluster.refreshMetadata()
  } catch (error) {
    log('debug', 'metadata could not be read', { groupId: group.groupId, error: String(error) })
  }
}

/**
 * A broker that lets a whole time limit pass may have gone without closing its connections. kafkajs would ask it again and again, for
 * minutes, until its metadata is old: let go of it, and look who leads its partitions now.
 */
async function giveUpIfSilent(
  group: GroupInternals, broker: BrokerInternals | null | undefined, error: unknown, hooks: MembershipHooks | undefined,
): Promise<void> {
  if (!broker || !hooks || (error as { name?: string } | null)?.name !== 'KafkaJSRequestTimeoutError') return
  hooks.log('warn', 'a broker does not answer: its connections are given up', { groupId: group.groupId, nodeId: broker.nodeId })
  // Else what was asked since is waited for as long again.
  for (const connection of broker.connectionPool.pool) connection.rejectRequests(error)
  await broker.disconnect()
  await refreshMetadata(group, hooks)
}

/**
 * kafkajs keeps the coordinator of the last join, and nothing makes it join when that has moved, or its broker does not answer or is
 * gone for good: look it up again.
 */
export async function refreshCoordinatorIfMoved(group: GroupInternals, error: unknown): Promise<void> {
  const type = (error as { type?: string } | null)?.type
  if (type !== 'NOT_COORDINATOR_FOR_GROUP' && !isRetriableKafkaError(error)) return
  const coordinator = await group.cluster.findGroupCoordinator({ groupId: group.groupId })
  group.coordinator = coordinator
  if (group.offsetManager) group.offsetManager.coordinator = coordinator
}

function hooksOf(group: GroupInternals): MembershipHooks | undefined {
  for (const assigner of group.assigners) {
    const hooks = hooksByAssigner.get(assigner)
    if (hooks) return hooks
  }
  return undefined
}

/** Thrown by a hook when joining again cannot help (a missing topic, no right to read): it goes on to kafkajs and ends the consumer. */
export class FatalMembershipError extends Error {
  override readonly name = 'FatalMembershipError'
}

const isFatal = (error: unknown): boolean => error instanceof FatalMembershipError

const joiningHeartbeatMs = 500

/** Nothing fetches while a join is being completed, so nothing heartbeats either: do it here, or a slow start would expel the member. */
export async function heartbeating(group: GroupInternals, work: Promise<void> | undefined): Promise<void> {
  if (!work) return
  const timer = setInterval(() => {
    // A failed heartbeat shows again in the fetch loop, which knows how to join anew.
    group.heartbeat({ interval: 0 }).catch(() => undefined)
  }, joiningHeartbeatMs)
  try {
    await work
  } finally {
    clearInterval(timer)
  }
}
