import type { ScannedRecord, ScanRange } from '../kafka/scanner.ts'

/** What a look-up has read so far, to be said beside its answer: a topic that was read in part proves less. */
export type Scanned = {
  /** Partitions looked into, by topic. */
  readonly partitions: ReadonlyMap<string, number>
  readonly records: number
  /** Of those looked into: written by a newer posthouse, or no record of ours. */
  readonly unreadable: number
  /** Of the oldest and the youngest record read, epoch ms. */
  readonly oldestAt: number | null
  readonly youngestAt: number | null
  /** The offsets that were to be read; what is left of them was not needed, or too much. */
  readonly wanted: number
  /** Something was left out that the answer might have needed; in words. null: nothing was. */
  readonly leftOut: string | null
}

export type ScanAccount = Scanned & {
  begin(ranges: readonly ScanRange[]): void
  took(records: readonly ScannedRecord[]): void
  unreadableOne(): void
  leaveOut(what: string): void
}

/** Kept by the caller, who may look at it while the reading goes on. */
export function createScanAccount(): ScanAccount {
  const partitions = new Map<string, number>()
  let records = 0
  let unreadable = 0
  let wanted = 0
  let oldestAt: number | null = null
  let youngestAt: number | null = null
  let leftOut: string | null = null
  return {
    partitions,
    get records() {
      return records
    },
    get unreadable() {
      return unreadable
    },
    get oldestAt() {
      return oldestAt
    },
    get youngestAt() {
      return youngestAt
    },
    get wanted() {
      return wanted
    },
    get leftOut() {
      return leftOut
    },
    begin(ranges) {
      for (const { topic, from, to } of ranges) {
        partitions.set(topic, (partitions.get(topic) ?? 0) + 1)
        wanted += to - from
      }
    },
    took(some) {
      records += some.length
      // Within one fetch the ends are not the extremes where producers keep the time.
      for (const { timestamp } of some) {
        oldestAt = Math.min(oldestAt ?? timestamp, timestamp)
        youngestAt = Math.max(youngestAt ?? timestamp, timestamp)
      }
    },
    unreadableOne() {
      unreadable += 1
    },
    leaveOut(what) {
      leftOut ??= what
    },
  }
}
