import type { TopicPartition } from './assignment.ts'
import type { FetchedOffset, GroupInternals } from './membership.ts'

/** Where a partition begins that has no committed offset: a time is epoch ms. */
export type StartPosition = 'earliest' | 'latest' | { readonly at: number }

/** What is known of an assigned partition before its first fetch. Offsets: committed null means none; high is the next to be written. */
export type PartitionOffsets = TopicPartition & {
  readonly committed: number | null
  readonly metadata: string | null
  readonly low: number
  readonly high: number
}

type Partitions = readonly { readonly topic: string; readonly partitions: readonly number[] }[]

/** Committed offsets with their metadata, and both ends of the log. */
export async function readPartitionOffsets(group: GroupInternals, partitions: Partitions): Promise<PartitionOffsets[]> {
  const [committed, lows, highs] = await Promise.all([
    fetchCommitted(group, partitions),
    listOffsets(group, partitions, 'earliest'),
    listOffsets(group, partitions, 'latest'),
  ])
  return partitions.flatMap(({ topic, partitions: numbers }) => numbers.map((partition): PartitionOffsets => {
    const key = keyOf(topic, partition)
    const found = committed.get(key)
    const low = lows.get(key)
    const high = highs.get(key)
    if (low === undefined || high === undefined) throw new Error(`the broker gave no offsets for ${topic} partition ${partition}`)
    // -1: none. -2 is what kafkajs itself commits for "the earliest there is" after an offset out of range.
    const offset = Number(found?.offset ?? -1)
    const committedOffset = offset >= 0 ? offset : offset === -2 ? low : null
    return { topic, partition, committed: committedOffset, metadata: offset >= 0 ? (found?.metadata ?? null) : null, low, high }
  }))
}

async function fetchCommitted(group: GroupInternals, partitions: Partitions): Promise<Map<string, FetchedOffset>> {
  if (!group.offsetManager) throw new Error('offsets were asked for before the group was joined')
  const coordinator = await group.offsetManager.getCoordinator()
  const { responses } = await coordinator.offsetFetch({
    groupId: group.groupId,
    topics: partitions.map(({ topic, partitions: numbers }) => ({ topic, partitions: numbers.map((partition) => ({ partition })) })),
  })
  return new Map(responses.flatMap(({ topic, partitions: found }) => found.map((entry) => [keyOf(topic, entry.partition), entry] as const)))
}

/** Offsets at a position. A time beyond the last record gives the end of the log. */
export async function listOffsets(group: GroupInternals, partitions: Partitions, position: StartPosition): Promise<Map<string, number>> {
  const request = partitions.map(({ topic, partitions: numbers }) => ({
    topic,
    partitions: numbers.map((partition) => ({ partition })),
    ...(typeof position === 'object' ? { fromTimestamp: position.at } : { fromBeginning: position === 'earliest' }),
  }))
  const answers = await group.cluster.fetchTopicsOffset(request)
  const offsets = new Map(answers.flatMap(({ topic, partitions: found }) =>
    found.map(({ partition, offset }) => [keyOf(topic, partition), Number(offset)] as const)))
  if (typeof position === 'object' && [...offsets.values()].some((offset) => offset < 0)) {
    const ends = await listOffsets(group, partitions, 'latest')
    for (const [key, offset] of offsets) if (offset < 0) offsets.set(key, ends.get(key) ?? 0)
  }
  return offsets
}

const tagForm = /^n(\d{1,6});/

/** `n12;`: the topic's partition count at its first start, carried by every commit of a consumer with a start position. */
export const startTag = (partitionCount: number): string => `n${partitionCount};`

/** Commit metadata without the tag, as the ledger wrote it. */
export const withoutTag = (metadata: string | null): string | null => metadata?.replace(tagForm, '') ?? null

/**
 * The start of partitions that have no committed offset.
 * A partition whose number is at least the topic's partition count at its first start was added later: nothing in it is history,
 * so it is read from its beginning. The count is the smallest found in any commit of the topic; without one, this is the first start.
 */
export async function findStarts(
  group: GroupInternals,
  missing: readonly TopicPartition[],
  position: StartPosition,
): Promise<Map<string, { offset: number; firstCount: number; isAdded: boolean }>> {
  const starts = new Map<string, { offset: number; firstCount: number; isAdded: boolean }>()
  for (const topic of new Set(missing.map((one) => one.topic))) {
    const all = group.cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)
    const firstCount = await readFirstCount(group, topic, all)
    const numbers = missing.filter((one) => one.topic === topic).map((one) => one.partition)
    const configured = await listOffsets(group, [{ topic, partitions: numbers }], position)
    const beginnings = await listOffsets(group, [{ topic, partitions: numbers }], 'earliest')
    for (const partition of numbers) {
      const key = keyOf(topic, partition)
      const isAdded = partition >= firstCount
      const offset = (isAdded ? beginnings : configured).get(key)
      if (offset === undefined) throw new Error(`the broker gave no start offset for ${key}`)
      starts.set(key, { offset, firstCount, isAdded })
    }
  }
  return starts
}

/** The topic's partition count at its first start, or its present one when no commit tells. */
export async function readFirstCount(group: GroupInternals, topic: string, partitions: readonly number[]): Promise<number> {
  const committed = await fetchCommitted(group, [{ topic, partitions }])
  const counts = [...committed.values()].flatMap(({ metadata }) => {
    const found = tagForm.exec(metadata ?? '')?.[1]
    return found === undefined ? [] : [Number(found)]
  })
  return counts.length > 0 ? Math.min(...counts) : partitions.length
}

export const keyOf = (topic: string, partition: number): string => `${topic}/${partition}`
