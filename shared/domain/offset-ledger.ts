import { decodeDoneSet, encodeDoneSet } from './done-set.ts'
import { createUnfinishedOffsets } from './unfinished-offsets.ts'

/**
 * The account of one partition: which offsets were begun, which are done, and what may be committed.
 *
 * Every offset is in one of four places:
 *   below the lowest unfinished one    done, covered by the committed offset
 *   begun                              unfinished until done(); at most these are repeated after a crash
 *   below the position, not begun      done: a gap left by compaction, a control record, or finished before a restart
 *   at or above the position           not read yet; done only if the restored set has it
 * What holds always: the committed offset is never above an unfinished one, and the set above it holds only done ones.
 * Memory follows the number of unfinished offsets, not the span they lie in.
 */
export type OffsetLedger = {
  /** The next offset not read yet; null before the first one. Above the topic's end it tells of a topic made anew. */
  readonly position: number | null
  readonly unfinishedCount: number
  readonly lowestUnfinished: number | null
  /** Offsets from the lowest unfinished one to the highest read, both counted; 0 when nothing is unfinished. */
  readonly span: number
  /** True for what needs no work: below the committed offset, in the restored set, or read and not unfinished. */
  isDone(offset: number): boolean
  isUnfinished(offset: number): boolean
  /**
   * Takes an offset in hand; upwards, but kafkajs may read the same ones again after a rebalance.
   * False: it is done or in hand already, and the caller drops the record.
   * @throws when the log went back to below where this account began: it must be made anew, or records would be lost
   */
  begin(offset: number): boolean
  /** Everything up to and including `offset` has been read; what was not begun needs no work. */
  seen(offset: number): void
  /** False where the offset was not unfinished. */
  done(offset: number): boolean
  /** What to commit, or null when the broker has it already. The same answer until markCommitted or a change. */
  commit(): OffsetCommit | null
  /** To be called once the broker has taken `commit`, and not otherwise. */
  markCommitted(commit: OffsetCommit): void
}

/** `offset`: the lowest that is not done. `metadata`: the done set above it, '' where there is none. */
export type OffsetCommit = { readonly offset: number; readonly metadata: string }

export type OffsetLedgerOptions = {
  /** As the broker has it; null or below 0 (kafkajs) where there is none. */
  readonly committedOffset: number | null
  readonly metadata: string | null
  /** The topic's present first offset and end, read after the committed one. Outside of them the commit is of another log: ignored. */
  readonly lowOffset?: number
  readonly highOffset?: number
  /** Characters the metadata may take; the broker's own default limit (offset.metadata.max.bytes) is 4096. */
  readonly maxMetadata?: number
}

export function createOffsetLedger(options: OffsetLedgerOptions): OffsetLedger {
  const { committedOffset, metadata, lowOffset = 0, highOffset = Number.MAX_SAFE_INTEGER, maxMetadata = 4096 } = options
  const isRestored = committedOffset !== null && committedOffset >= Math.max(0, lowOffset) && committedOffset <= highOffset

  let begunAt = isRestored ? committedOffset : null
  let position = begunAt ?? 0
  let restored = isRestored ? restoredRuns(committedOffset, metadata, highOffset) : []

  const unfinished = createUnfinishedOffsets()

  // Grows with each change that a commit could show; 0 = nothing to say yet.
  let version = 0
  let computedVersion = -1
  let computed: OffsetCommit = { offset: 0, metadata: '' }
  let marked: OffsetCommit | null = isRestored ? { offset: committedOffset, metadata: metadata ?? '' } : null

  /** Index in `restored` of the first run that ends above `offset`. */
  function restoredIndex(offset: number): number {
    let low = 0
    let high = restored.length / 2
    while (low < high) {
      const middle = (low + high) >>> 1
      if (restored[middle * 2 + 1]! <= offset) low = middle + 1
      else high = middle
    }
    return low * 2
  }

  function isInRestored(offset: number): boolean {
    if (restored.length === 0) return false
    const index = restoredIndex(offset)
    return index < restored.length && restored[index]! <= offset
  }

  function advance(next: number): void {
    if (begunAt === null) begunAt = next
    position = next
    if (restored.length > 0 && restored[restored.length - 1]! <= position) restored = []
  }

  function lowestNotDone(): number {
    if (unfinished.lowest !== null) return unfinished.lowest
    return isInRestored(position) ? restored[restoredIndex(position) + 1]! : position
  }

  function runsAbove(base: number): number[] {
    const runs = unfinished.runsBetween(position, maxMetadata)
    for (let i = restoredIndex(Math.max(position, base)); i < restored.length; i += 2) {
      const start = Math.max(restored[i]!, position)
      if (runs[runs.length - 1] === start) runs[runs.length - 1] = restored[i + 1]!
      else runs.push(start, restored[i + 1]!)
    }
    return runs
  }

  return {
    get position() {
      return begunAt === null ? null : position
    },
    get unfinishedCount() {
      return unfinished.count
    },
    get lowestUnfinished() {
      return unfinished.lowest
    },
    get span() {
      return unfinished.lowest === null ? 0 : position - unfinished.lowest
    },

    isDone(offset) {
      if (begunAt === null) return false
      if (offset >= position) return isInRestored(offset)
      return offset >= begunAt ? !unfinished.has(offset) : isRestored
    },

    isUnfinished: (offset) => unfinished.has(offset),

    begin(offset) {
      if (begunAt === null) {
        begunAt = offset
        position = offset
        version += 1
      }
      if (offset < position) {
        if (offset >= begunAt || isRestored) return false
        throw new Error(`Offset ${offset} was read after this account began at ${begunAt}: the log was made anew or lost its end. ` +
          'Drop the account of this partition and make a new one from the committed offset.')
      }
      const isKnown = isInRestored(offset)
      if (isKnown || offset !== position) version += 1
      advance(offset + 1)
      if (isKnown) return false
      unfinished.add(offset)
      return true
    },

    seen(offset) {
      if (begunAt !== null && offset < position) return
      advance(offset + 1)
      version += 1
    },

    done(offset) {
      if (!unfinished.remove(offset)) return false
      version += 1
      return true
    },

    commit() {
      if (version === 0) return null
      if (computedVersion !== version) {
        const offset = lowestNotDone()
        computed = { offset, metadata: encodeDoneSet(offset, runsAbove(offset), maxMetadata) }
        computedVersion = version
      }
      return marked !== null && marked.offset === computed.offset && marked.metadata === computed.metadata ? null : computed
    },

    markCommitted(commit) {
      marked = commit
    },
  }
}

/** A set that reaches beyond the topic's end was not written about this log. */
function restoredRuns(committedOffset: number, metadata: string | null, highOffset: number): readonly number[] {
  if (metadata === null || metadata === '') return []
  const runs = decodeDoneSet(committedOffset, metadata)
  return runs === null || (runs[runs.length - 1] ?? 0) > highOffset ? [] : runs
}
