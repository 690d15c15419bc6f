import type { Lease } from '../../shared/kafka/partition-window.ts'

/** A record that has come up. `readyAt`: epoch ms in broker time, when it might have been taken at the earliest. */
export type Ready = { readonly lease: Lease; readonly readyAt: number }

/** Records in hand of one retry topic, until their stay is over. Times are epoch ms in broker time, at or before the true one. */
export type WaitingLine = {
  readonly size: number
  push(lease: Lease): void
  /** When the next one comes up; null when nothing waits. */
  nextReadyAt(): number | null
  /** The next one if its stay is over at `now`: never early. */
  takeReady(now: number): Ready | null
  /** The next one whatever the time. */
  takeFirst(): Ready | null
  /** Forgets what belongs to partitions that were lost. */
  dropLost(): void
}
