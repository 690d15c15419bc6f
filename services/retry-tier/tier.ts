import type { Lease } from '../../shared/kafka/partition-window.ts'
import type { Ready, WaitingLine } from './waiting-line.ts'

/** Taken entries are cut off an array when they are at least this many and half of it: O(1) per record. */
const leastCutOff = 64

type PartitionLine = { leases: Lease[]; taken: number }

/**
 * The line of one tier topic. One delay and the broker's own timestamps: within a partition the order of coming up is the order of
 * offsets, so only heads are looked at, and nothing is held back by a record that came before it.
 * Were the broker's clock set back, a head might come up later than what follows it: those wait for it, and are late rather than early.
 */
export function createTierLine(delayMs: number): WaitingLine {
  const partitions = new Map<number, PartitionLine>()
  let size = 0

  const headOf = ({ leases, taken }: PartitionLine): Lease => leases[taken]!
  const readyAtOf = (line: PartitionLine): number => headOf(line).record.timestamp + delayMs

  function earliest(): PartitionLine | null {
    let found: PartitionLine | null = null
    for (const line of partitions.values()) {
      if (found === null || readyAtOf(line) < readyAtOf(found)) found = line
    }
    return found
  }

  function takeHead(line: PartitionLine): Ready {
    const ready = { lease: headOf(line), readyAt: readyAtOf(line) }
    line.taken += 1
    size -= 1
    if (line.taken === line.leases.length) {
      partitions.delete(ready.lease.record.partition)
    } else if (line.taken >= leastCutOff && line.taken * 2 >= line.leases.length) {
      line.leases = line.leases.slice(line.taken)
      line.taken = 0
    }
    return ready
  }

  return {
    get size() {
      return size
    },
    push(lease) {
      const line = partitions.get(lease.record.partition)
      if (line) line.leases.push(lease)
      else partitions.set(lease.record.partition, { leases: [lease], taken: 0 })
      size += 1
    },
    nextReadyAt() {
      const line = earliest()
      return line && readyAtOf(line)
    },
    takeReady(now) {
      const line = earliest()
      return line && readyAtOf(line) <= now ? takeHead(line) : null
    },
    takeFirst() {
      const line = earliest()
      return line && takeHead(line)
    },
    dropLost() {
      for (const [partition, { leases, taken }] of partitions) {
        // After a loss the partition may be held anew, so that its line has leases of both.
        const held = leases.slice(taken).filter((lease) => lease.isHeld)
        size -= leases.length - taken - held.length
        if (held.length === 0) partitions.delete(partition)
        else partitions.set(partition, { leases: held, taken: 0 })
      }
    },
  }
}
