import type { RunEnd } from './in-batches.ts'
import type { RefusalReason } from './verdict.ts'

export type RefusedLetter = { readonly key: string; readonly reason: RefusalReason; readonly message: string }
export type FailedLetter = { readonly key: string; readonly message: string }

/** What a run over dead letters came to. */
export type RunReport = {
  readonly end: RunEnd
  /** Replayed (and cleared), or discarded. */
  readonly done: number
  /** Replayed before by somebody who was killed, and cleared now. */
  readonly leftovers: number
  readonly refused: number
  readonly refusedByReason: Readonly<Partial<Record<RefusalReason, number>>>
  /** Kafka would not take what was to be written for them: they are dead letters still. */
  readonly failed: number
  /** The first so many of each. */
  readonly refusals: readonly RefusedLetter[]
  readonly failures: readonly FailedLetter[]
  /** Ids that were asked for, and of which nothing is there. */
  readonly missing: readonly string[]
}

const mostKept = 20

/** Counts as a run goes on; memory stays the same however many there are. */
export function createTally() {
  const refusals: RefusedLetter[] = []
  const failures: FailedLetter[] = []
  const refusedByReason: Partial<Record<RefusalReason, number>> = {}
  const counts = { done: 0, leftovers: 0, refused: 0, failed: 0 }
  return {
    counts,
    refuse(letter: RefusedLetter): void {
      counts.refused += 1
      refusedByReason[letter.reason] = (refusedByReason[letter.reason] ?? 0) + 1
      if (refusals.length < mostKept) refusals.push(letter)
    },
    fail(letter: FailedLetter): void {
      counts.failed += 1
      if (failures.length < mostKept) failures.push(letter)
    },
    report: (end: RunEnd, missing: readonly string[]): RunReport => ({ end, ...counts, refusedByReason, refusals, failures, missing }),
  }
}

export type Tally = ReturnType<typeof createTally>
