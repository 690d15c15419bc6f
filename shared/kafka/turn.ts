import { setTimeout as sleep } from 'node:timers/promises'
import { stickyAssigner } from './assignment.ts'
import { createKafka, type KafkaConnection } from './client.ts'
import { disconnectConsumer } from './disconnect.ts'
import { withMembershipHooks, type GroupInternals } from './membership.ts'

/** The right to do something that only one process at a time may do. */
export type Turn = {
  /**
   * Resolves true when nobody else can have it now: ask before each step. False for good once somebody else may have had it. While the
   * brokers do not answer, it waits.
   */
  isHeld(): Promise<boolean>
  /** Lets the next one have it. May be called again. */
  end(): Promise<void>
}

export type TurnOptions = {
  readonly connection: KafkaConnection
  /** Its members are those who want the turn, and who owns partition 0 of the topic has it. Nothing is read and nothing committed. */
  readonly groupId: string
  readonly topic: string
  /** After so long without a sign of life somebody who was killed has lost it, ms. */
  readonly sessionTimeoutMs?: number
}

const decidingPartition = 0
const heartbeatMs = 500
/** A sign of life older than this share of the session proves nothing: this process may have stood still. */
const provenShare = 0.7
const waitMs = 50

type Pausing = { pause(partitions: readonly { readonly topic: string; readonly partitions: readonly number[] }[]): void }

/**
 * Takes the turn, or null when somebody has it: who owns the partition keeps it whoever joins. Where the last one was killed it takes
 * up to the session's time.
 * @throws when the group cannot be joined
 */
export async function takeTurn({ connection, groupId, topic, sessionTimeoutMs = 10_000 }: TurnOptions): Promise<Turn | null> {
  let isHeld = false
  let isOver = false
  let generation = -1
  /** performance.now() ms, when the group last heard from this member. */
  let aliveAt = -Infinity
  const decided = Promise.withResolvers<void>()

  async function beforeJoin({ memberId }: GroupInternals): Promise<void> {
    // Expelled: somebody else may have had it since.
    if (memberId === null && isHeld) lose()
  }

  async function afterJoin(group: GroupInternals): Promise<void> {
    const assigned = group.assigned()
    // All paused, the member does nothing but say that it is alive.
    ;(group as unknown as Pausing).pause(assigned)
    generation = group.generationId ?? -1
    const owns = assigned.some((one) => one.topic === topic && one.partitions.includes(decidingPartition))
    aliveAt = performance.now()
    if (owns && !isOver) isHeld = true
    else lose()
    decided.resolve()
  }

  function lose(): void {
    if (isHeld && !isOver) connection.log('warn', 'the turn was lost: the brokers did not hear from this process for too long', { groupId })
    isHeld = false
    isOver = true
  }

  const owned = () => ({ generation, owned: isHeld ? [{ topic, partition: decidingPartition }] : [] })
  const consumer = createKafka(connection).consumer({
    groupId,
    partitionAssigners: [withMembershipHooks(stickyAssigner(owned), { beforeJoin, afterJoin, onFetch: () => {}, log: connection.log })],
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: 20_000,
    heartbeatInterval: heartbeatMs,
    maxWaitTimeInMs: 100,
    retry: { initialRetryTime: 200, maxRetryTime: 5_000, retries: 1_000 },
  })
  consumer.on(consumer.events.HEARTBEAT, () => { aliveAt = performance.now() })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    lose()
    if (!payload.restart) decided.reject(payload.error)
  })
  let ending: Promise<void> | null = null
  const end = (): Promise<void> => {
    isHeld = false
    isOver = true
    return (ending ??= disconnectConsumer(consumer))
  }
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: async () => {} })
    await decided.promise
  } catch (error) {
    await end()
    throw error
  }
  if (!isHeld) {
    await end()
    return null
  }
  return {
    end,
    async isHeld() {
      while (isHeld && performance.now() - aliveAt > sessionTimeoutMs * provenShare) await sleep(waitMs)
      return isHeld
    },
  }
}
