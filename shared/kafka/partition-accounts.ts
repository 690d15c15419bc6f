import { createOffsetLedger, type OffsetLedger } from '../domain/offset-ledger.ts'
import type { TopicPartition } from './assignment.ts'
import type { KafkaLog } from './client.ts'
import type { GroupInternals } from './membership.ts'
import {
  findStarts, keyOf, readFirstCount, readPartitionOffsets, startTag, withoutTag, type PartitionOffsets, type StartPosition,
} from './start-position.ts'

/** What a member must know of a partition before it reads from it. */
export type PartitionAccount = TopicPartition & {
  readonly ledger: OffsetLedger
  /** Goes before the done set in each commit's metadata; '' for none. */
  readonly tag: string
}

/** Characters for the done set: what the broker's default limit (offset.metadata.max.bytes, 4,096) leaves beside the tag. */
const maxMetadata = 4_000

/** Reads what was committed of partitions that were gained, and settles where those begin that have nothing committed. */
export async function openAccounts(
  joined: GroupInternals,
  partitions: Parameters<typeof readPartitionOffsets>[1],
  startPosition: StartPosition | null,
  log: KafkaLog,
): Promise<PartitionAccount[]> {
  const offsets = await readPartitionOffsets(joined, partitions)
  const tags = startPosition === null ? new Map<string, string>() : await settleStarts(joined, offsets, startPosition, log)
  return offsets.map(({ topic, partition, committed, metadata, low, high }) => ({
    topic, partition, tag: tags.get(topic) ?? '',
    // Outside the log it is a commit of a topic that has been made anew, or of records that are gone: the ledger ignores it.
    ledger: createOffsetLedger({ committedOffset: committed, metadata: withoutTag(metadata), lowOffset: low, highOffset: high, maxMetadata }),
  }))
}

/** Commits the start of what has no committed offset, so that it is decided once, and returns each topic's tag. */
async function settleStarts(
  joined: GroupInternals, offsets: readonly PartitionOffsets[], startPosition: StartPosition, log: KafkaLog,
): Promise<Map<string, string>> {
  const tags = new Map<string, string>()
  const missing = offsets.filter(({ committed }) => committed === null)
  const starts = await findStarts(joined, missing, startPosition)
  for (const { topic, partition } of missing) {
    const start = starts.get(keyOf(topic, partition))
    if (!start) continue
    await joined.offsetManager?.commitOffsets({
      topics: [{ topic, partitions: [{ partition, offset: String(start.offset), metadata: startTag(start.firstCount) }] }],
    })
    log('info', 'first start on a partition', { groupId: joined.groupId, topic, partition, ...start, startPosition })
    tags.set(topic, startTag(start.firstCount))
  }
  for (const topic of new Set(offsets.map((one) => one.topic))) {
    if (tags.has(topic)) continue
    const all = joined.cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)
    tags.set(topic, startTag(await readFirstCount(joined, topic, all)))
  }
  return tags
}
