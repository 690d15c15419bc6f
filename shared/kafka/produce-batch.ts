import { partitionOf } from './partitioner.ts'
import type { TopicView } from './topic-views.ts'
import type { ProducedRecord } from './produced-record.ts'

export type Acknowledgement = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Epoch ms, broker time; null where the topic does not keep LogAppendTime. */
  readonly appendedAt: number | null
}

/** A record on its way, with the promise of who sent it. */
export type Pending = {
  readonly record: ProducedRecord
  readonly bytes: number
  failures: number
  /** Failures that were neither Kafka's nor the network's. */
  internalFailures: number
  /** performance.now() ms when its topic was first found unknown. */
  unknownSince: number | null
  isSettled: boolean
  readonly resolve: (acknowledgement: Acknowledgement) => void
  readonly reject: (error: Error) => void
}

/** What goes to one partition in one request; the broker gives it consecutive offsets in this order. */
export type Group = { readonly topic: string; readonly partition: number; readonly pendings: readonly Pending[] }

const maxBatchRecords = 500
const maxBatchBytes = 512 * 1024
const leastRetryDelayMs = 100
const mostRetryDelayMs = 5_000

/** The head of the queue that goes into one batch: at most 500 records and 512 KiB, but always one. Leaves the queue as it is. */
export function headOf(queue: readonly Pending[]): readonly Pending[] {
  let bytes = 0
  let count = 0
  while (count < queue.length && count < maxBatchRecords) {
    bytes += queue[count]!.bytes
    if (count > 0 && bytes > maxBatchBytes) break
    count++
  }
  return queue.slice(0, count)
}

export type Placed = {
  readonly byLeader: ReadonlyMap<number, readonly Group[]>
  /** Records whose topic, partition or leader is missing, with the protocol's name for it. */
  readonly unplaced: readonly { readonly pending: Pending; readonly errorType: string }[]
}

/** Chosen anew at each try: the topic may have grown, and a keyless record may go elsewhere. */
export function placeBatch(
  batch: readonly Pending[],
  views: ReadonlyMap<string, TopicView>,
  spread: (topic: string, partitionCount: number) => number,
): Placed {
  const groups = new Map<string, { leader: number; topic: string; partition: number; pendings: Pending[] }>()
  const unplaced: { pending: Pending; errorType: string }[] = []
  for (const pending of batch) {
    const { topic, key } = pending.record
    const view = views.get(topic)
    if (!view?.leaders) {
      unplaced.push({ pending, errorType: view?.errorType ?? 'UNKNOWN_TOPIC_OR_PARTITION' })
      continue
    }
    const count = view.leaders.length
    const partition = pending.record.partition ?? (key === null ? spread(topic, count) : partitionOf(asBuffer(key), count))
    const leader = view.leaders[partition]
    if (leader === undefined || leader < 0) {
      unplaced.push({ pending, errorType: leader === undefined ? 'UNKNOWN_TOPIC_OR_PARTITION' : 'LEADER_NOT_AVAILABLE' })
      continue
    }
    const id = `${partition}/${topic}`
    const group = groups.get(id) ?? { leader, topic, partition, pendings: [] }
    groups.set(id, group)
    group.pendings.push(pending)
  }
  return { byLeader: Map.groupBy(groups.values(), ({ leader }) => leader), unplaced }
}

/** Pause before the next try, ms: doubles from 100 ms to 5 s, the last fifth of it at random. */
export function retryDelayMs(failures: number): number {
  const delayMs = Math.min(mostRetryDelayMs, leastRetryDelayMs * 2 ** Math.min(failures - 1, 10))
  return delayMs * (0.8 + 0.2 * Math.random())
}

function asBuffer(key: Buffer | string): Buffer {
  return Buffer.isBuffer(key) ? key : Buffer.from(key)
}
