import type { Admin } from 'kafkajs'
import type { TopicPartition } from './assignment.ts'
import { kafkaErrorType, type KafkaLog } from './client.ts'

export type TrimTarget = {
  readonly topic: string
  /** Whose committed offsets say what has been dealt with. */
  readonly groupId: string
  /** Those this process owns: then one process trims each. */
  readonly partitions: readonly number[]
}

export type Trimmed = TopicPartition & { readonly records: number }

/**
 * Deletes what a group has committed and what was appended before `olderThanAt` (epoch ms, broker time), in topics whose policy is
 * `delete`; a compacted topic refuses. Returns what went, by partition.
 * A commit beyond the log's end is of a topic made anew: nothing is deleted by it.
 * @throws when Kafka refuses or gives no answer
 */
export async function trimBehind(admin: Admin, { topic, groupId, partitions }: TrimTarget, olderThanAt: number): Promise<Trimmed[]> {
  if (partitions.length === 0) return []
  // It also loads the topic's metadata, without which kafkajs cannot find the leaders to ask.
  const ends = await admin.fetchTopicOffsets(topic)
  const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
  const aged = await admin.fetchTopicOffsetsByTimestamp(topic, Math.floor(olderThanAt))
  const committedBy = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]))
  const agedBy = new Map(aged.map(({ partition, offset }) => [partition, Number(offset)]))
  const cuts = ends.flatMap(({ partition, low, high }) => {
    if (!partitions.includes(partition)) return []
    const done = committedBy.get(partition) ?? -1
    const offset = Math.min(done, agedBy.get(partition) ?? -1)
    return done <= Number(high) && offset > Number(low) ? [{ partition, offset, records: offset - Number(low) }] : []
  })
  if (cuts.length === 0) return []
  cuts.sort((a, b) => a.partition - b.partition)
  await deleteBefore(admin, topic, cuts)
  return cuts.map(({ partition, records }) => ({ topic, partition, records }))
}

/** Deletes the records of a topic below an offset of each partition. */
async function deleteBefore(admin: Admin, topic: string, cuts: readonly { partition: number; offset: number }[]): Promise<void> {
  const request = { topic, partitions: cuts.map(({ partition, offset }) => ({ partition, offset: String(offset) })) }
  try {
    await admin.deleteTopicRecords(request)
  } catch {
    // kafkajs hides the cause, which is most often a leader that has moved: with fresh metadata the second try tells.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords(request)
  }
}

export type Trimmer = {
  /** Resolves once nothing is under way any more, so that the admin client may be closed. */
  close(): Promise<void>
}

export type TrimmerOptions = {
  readonly admin: Admin
  /** What is owned at the moment. */
  targets(): readonly TrimTarget[]
  /** Epoch ms, at or before the broker's own time. */
  now(): number
  /** How long records are kept behind the committed offset, for people who look at them, ms. */
  readonly keepMs?: number
  readonly intervalMs?: number
  readonly log: KafkaLog
  onTrimmed?(target: TrimTarget, trimmed: readonly Trimmed[]): void
}

const hourMs = 3_600_000
const defaultIntervalMs = 5 * 60_000

/** Trims again and again what this process owns. A failure is logged and tried at the next turn: records kept too long do no harm. */
export function createTrimmer(options: TrimmerOptions): Trimmer {
  const { admin, log, keepMs = hourMs, intervalMs = defaultIntervalMs } = options
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let trimming: Promise<void> = Promise.resolve()

  async function trimAll(): Promise<void> {
    for (const target of options.targets()) {
      if (isClosed) return
      try {
        const trimmed = await trimBehind(admin, target, options.now() - keepMs)
        if (trimmed.length > 0) options.onTrimmed?.(target, trimmed)
      } catch (error) {
        log('warn', 'a topic could not be trimmed: it is tried again later', {
          topic: target.topic, intervalMs, error: String(error), errorType: kafkaErrorType(error),
        })
      }
    }
  }

  function wait(): void {
    // Spread, so that processes started together do not ask together.
    timer = setTimeout(() => {
      trimming = trimAll().finally(() => { if (!isClosed) wait() })
    }, intervalMs * (0.75 + Math.random() * 0.5))
    timer.unref()
  }

  wait()
  return {
    close() {
      isClosed = true
      clearTimeout(timer)
      return trimming
    },
  }
}
