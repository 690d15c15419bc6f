import type { Lease } from '../../shared/kafka/partition-window.ts'

/** Records in hand that wait for their turn, first come first served. */
export type Line = {
  readonly size: number
  push(lease: Lease): void
  take(): Lease | null
  /** Forgets what belongs to partitions that were lost. */
  dropLost(): void
}

/** Taken places are cut off the array when they are at least this many and half of it: O(1) per record. */
const leastCutOff = 256

export function createLine(): Line {
  let leases: Lease[] = []
  let taken = 0
  return {
    get size() {
      return leases.length - taken
    },
    push(lease) {
      leases.push(lease)
    },
    take() {
      const lease = leases[taken]
      if (!lease) return null
      taken += 1
      if (taken >= leastCutOff && taken * 2 >= leases.length) {
        leases = leases.slice(taken)
        taken = 0
      }
      return lease
    },
    dropLost() {
      leases = leases.slice(taken).filter((lease) => lease.isHeld)
      taken = 0
    },
  }
}
