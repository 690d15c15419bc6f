import { createDueQueue } from '../../shared/domain/due-queue.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import type { Ready, WaitingLine } from './waiting-line.ts'

/**
 * The line of `retry.soon`: what waits less than the smallest tier, in memory and in due order across all partitions.
 * `readyAtOf` says when a record is to be taken: its due time, or at once where it still has to wait long enough for a tier
 * (it was written under other tiers), so that it does not fill the window meanwhile.
 */
export function createSoonLine(readyAtOf: (lease: Lease) => number): WaitingLine {
  const queue = createDueQueue<Ready>()
  return {
    get size() {
      return queue.size
    },
    push(lease) {
      const readyAt = readyAtOf(lease)
      queue.push(readyAt, { lease, readyAt })
    },
    nextReadyAt: () => queue.nextDueAt,
    takeReady: (now) => queue.popDue(now) ?? null,
    takeFirst: () => queue.pop() ?? null,
    dropLost: () => {
      queue.removeWhere(({ lease }) => !lease.isHeld)
    },
  }
}
