import type { OffsetLedger } from '../domain/offset-ledger.ts'
import type { TopicPartition } from './assignment.ts'
import type { ConsumedRecord } from './consumed-record.ts'

/**
 * A record in hand. `done()` says that everything it caused is acknowledged; only then may its offset be committed.
 * Once the partition is lost `isHeld` is false for good: nothing new may be started for the record, and `done()` changes nothing.
 */
export class Lease {
  readonly record: ConsumedRecord
  readonly weight: number
  readonly #window: PartitionWindow
  #isDone = false

  constructor(record: ConsumedRecord, weight: number, window: PartitionWindow) {
    this.record = record
    this.weight = weight
    this.#window = window
  }

  get isHeld(): boolean {
    return this.#window.isHeld
  }

  done(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#window.finish(this)
  }
}

/** The records of one held partition that were read and are not done, and the account of what may be committed. */
export class PartitionWindow {
  readonly topic: string
  readonly partition: number
  /** Goes before the done set in each commit's metadata; '' for none. */
  readonly tag: string
  isHeld = true
  isPaused = false
  unfinishedBytes = 0
  unfinishedCount = 0
  /** Next offset to read; null before the first fetch. */
  position: number | null = null
  highWatermark: number | null = null
  /** performance.now() of the last time the position moved or had nothing ahead of it. */
  movedAt = performance.now()
  readonly ledger: OffsetLedger
  readonly #onFinished: (lease: Lease) => void

  constructor(options: {
    topic: string
    partition: number
    tag: string
    ledger: OffsetLedger
    onFinished: (lease: Lease) => void
  }) {
    this.topic = options.topic
    this.partition = options.partition
    this.tag = options.tag
    this.ledger = options.ledger
    this.#onFinished = options.onFinished
  }

  /** Takes a record up, or returns null when it was read or finished before (a position that was set back, a restored done set). */
  take(record: ConsumedRecord, weight: number): Lease | null {
    if (!this.ledger.begin(record.offset)) return null
    this.unfinishedBytes += weight
    this.unfinishedCount += 1
    return new Lease(record, weight, this)
  }

  finish(lease: Lease): void {
    if (!this.isHeld) return
    this.ledger.done(lease.record.offset)
    this.unfinishedBytes -= lease.weight
    this.unfinishedCount -= 1
    this.#onFinished(lease)
  }

  moveTo(position: number): void {
    if (this.position === position) return
    this.position = position
    this.movedAt = performance.now()
  }
}

export type PartitionState = TopicPartition & {
  readonly unfinishedCount: number
  readonly unfinishedBytes: number
  readonly position: number | null
  readonly highWatermark: number | null
  /** How long the position has been below the high watermark without moving although nothing holds it, ms. */
  readonly stalledMs: number
}

export function stateOf(window: PartitionWindow): PartitionState {
  const { topic, partition, unfinishedCount, unfinishedBytes, position, highWatermark } = window
  const isBehind = position !== null && highWatermark !== null && position < highWatermark && !window.isPaused
  return {
    topic, partition, unfinishedCount, unfinishedBytes, position, highWatermark,
    stalledMs: isBehind ? performance.now() - window.movedAt : 0,
  }
}
