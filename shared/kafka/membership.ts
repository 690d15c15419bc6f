import { createRequire } from 'node:module'
import type { PartitionAssigner } from 'kafkajs'

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
  resolveOffset(position: { topic: string; partition: number; offset: string }): void
  commitOffsets(offsets: { topics: readonly TopicCommit[] }): Promise<void>
}

export type TopicCommit = {
  readonly topic: string
  readonly partitions: readonly { readonly partition: number; readonly offset: string; readonly metadata: string | null }[]
}

export type Coordinator = {
  offsetFetch(request: {
    groupId: string
    topics: readonly { topic: string; partitions: readonly { partition: number }[] }[]
  }): Promise<{ responses: readonly { topic: string; partitions: readonly FetchedOffset[] }[] }>
}

export type FetchedOffset = { readonly partition: number; readonly offset: string; readonly metadata: string | null }

export type ClusterInternals = {
  findGroupCoordinator(request: { groupId: string }): Promise<Coordinator>
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[]
  fetchTopicsOffset(topics: readonly {
    topic: string
    partitions: readonly { partition: number }[]
    fromBeginning?: boolean
    fromTimestamp?: number
  }[]): Promise<readonly { topic: string; partitions: readonly { partition: number; offset: string }[] }[]>
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
  /** What a fetch begun at `begunAt` (performance.now(), ms) returned; not called when it failed. */
  onFetch(begunAt: number, batches: readonly FetchedBatch[]): void
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
  fetch(this: GroupInternals, nodeId: number): Promise<readonly FetchedBatch[]>
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

  prototype.joinAndSync = async function () {
    const hooks = hooksOf(this)
    if (!hooks) return joinAndSync.call(this)
    await hooks.beforeJoin(this)
    for (;;) {
      await joinAndSync.call(this)
      try {
        return await hooks.afterJoin(this)
      } catch (error) {
        // The assignment is only usable with its offsets; whatever went wrong, joining again asks for all of it again.
        if (isFatal(error)) throw error
        await new Promise((resolve) => setTimeout(resolve, rejoinPauseMs))
      }
    }
  }

  prototype.fetch = async function (nodeId) {
    const hooks = hooksOf(this)
    const begunAt = performance.now()
    const batches = await fetch.call(this, nodeId)
    hooks?.onFetch(begunAt, batches)
    return batches
  }

  prototype.heartbeat = async function (options) {
    try {
      await heartbeat.call(this, options)
    } catch (error) {
      await refreshCoordinatorIfMoved(this, error)
      throw error
    }
  }
}

/** kafkajs keeps a coordinator that has moved until the next join, and nothing makes it join: look it up again. */
export async function refreshCoordinatorIfMoved(group: GroupInternals, error: unknown): Promise<void> {
  const type = (error as { type?: string } | null)?.type
  if (type !== 'NOT_COORDINATOR_FOR_GROUP' && type !== 'GROUP_COORDINATOR_NOT_AVAILABLE') return
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
