import type { Admin } from 'kafkajs'
import { decodeDoneSet } from '../domain/done-set.ts'
import { withoutTag } from './start-position.ts'

/** What a group has finished with in a partition. */
export type Committed = {
  /** The lowest offset that is not done; null: nothing was ever committed. */
  readonly offset: number | null
  /** Also of those above it that were finished out of order. */
  isDone(offset: number): boolean
}

/** By partition; a group that never was has committed nothing. */
export async function readCommitted(admin: Pick<Admin, 'fetchOffsets'>, groupId: string, topic: string): Promise<ReadonlyMap<number, Committed>> {
  const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return new Map(found?.partitions.map(({ partition, offset, metadata }) => [partition, committedOf(Number(offset), metadata)]))
}

function committedOf(base: number, metadata: string | null): Committed {
  if (base < 0) return { offset: null, isDone: () => false }
  const runs = decodeDoneSet(base, withoutTag(metadata) ?? '') ?? []
  return {
    offset: base,
    isDone(offset) {
      if (offset < base) return true
      for (let at = 0; at < runs.length; at += 2) if (offset >= runs[at]! && offset < runs[at + 1]!) return true
      return false
    },
  }
}
