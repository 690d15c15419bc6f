import { popFirst, popLast, pushEntry, removeEntries } from './two-ended-heap.ts'
import type { Ranked } from './two-ended-heap.ts'

/** A waiting delivery. `rank` is its routedAt (epoch ms). */
export type Queued<T> = Ranked & { readonly endpointKey: string; readonly item: T; readonly bytes: number }

/**
 * What waits to be sent: fair between endpoints (round robin), earliest routed first within one, so that none starves.
 *
 * An endpoint is ready (in the ring) or blocked (`canStart` said no; it left the ring until `unblock`). So a pick costs the
 * same with ten thousand endpoints at their caps as with none: each no is asked for once.
 * The danger is a lost wake-up: whoever makes `canStart` true again (a request ended, a throttle passed, a cap grew) calls
 * `unblock`. What is not about one endpoint (stopping, no file descriptors) does not belong in `canStart`.
 */
export type FairQueue<T> = {
  readonly size: number
  readonly bytes: number
  readonly endpointCount: number
  /** Those that have any waiting; entries may be taken out while it is gone through. */
  endpointKeys(): Iterable<string>
  countOf(endpointKey: string): number
  bytesOf(endpointKey: string): number
  /** `routedAt` in epoch ms; `bytes` is what the item holds of the window. O(log n of the endpoint). */
  push(endpointKey: string, item: T, routedAt: number, bytes: number): void
  /** The next one to start, taken out; null when no endpoint that waits may start. */
  next(canStart: (endpointKey: string) => boolean): Queued<T> | null
  /** Lets a blocked endpoint be asked again, at the end of the round. Cheap; harmless for one that is not blocked. */
  unblock(endpointKey: string): void
  /** At most `count` of an endpoint's deliveries, youngest first, taken out: to be parked. O(count * log n). */
  takeYoungest(endpointKey: string, count: number): Queued<T>[]
  /** Takes out what belongs to lost partitions: O(n), and once per rebalance. In no order. */
  removeWhere(isLost: (item: T) => boolean): Queued<T>[]
}

type Line<T> = {
  readonly endpointKey: string
  readonly heap: Queued<T>[]
  bytes: number
  isReady: boolean
  before: Line<T> | null
  after: Line<T> | null
}

export function createFairQueue<T>(): FairQueue<T> {
  const lines = new Map<string, Line<T>>()
  let first: Line<T> | null = null
  let last: Line<T> | null = null
  let size = 0
  let bytes = 0
  let sequence = 0

  function enterRing(line: Line<T>): void {
    line.isReady = true
    line.before = last
    if (last === null) first = line
    else last.after = line
    last = line
  }

  function leaveRing(line: Line<T>): void {
    line.isReady = false
    if (line.before === null) first = line.after
    else line.before.after = line.after
    if (line.after === null) last = line.before
    else line.after.before = line.before
    line.before = null
    line.after = null
  }

  function forgetIfEmpty(line: Line<T>): void {
    if (line.heap.length > 0) return
    if (line.isReady) leaveRing(line)
    lines.delete(line.endpointKey)
  }

  function account(line: Line<T>, entry: Queued<T>): void {
    size -= 1
    bytes -= entry.bytes
    line.bytes -= entry.bytes
  }

  return {
    get size() {
      return size
    },
    get bytes() {
      return bytes
    },
    get endpointCount() {
      return lines.size
    },
    endpointKeys: () => lines.keys(),
    countOf: (endpointKey) => lines.get(endpointKey)?.heap.length ?? 0,
    bytesOf: (endpointKey) => lines.get(endpointKey)?.bytes ?? 0,

    push(endpointKey, item, routedAt, itemBytes) {
      let line = lines.get(endpointKey)
      if (line === undefined) {
        line = { endpointKey, heap: [], bytes: 0, isReady: false, before: null, after: null }
        lines.set(endpointKey, line)
        enterRing(line)
      }
      sequence += 1
      pushEntry(line.heap, { rank: routedAt, sequence, endpointKey, item, bytes: itemBytes })
      line.bytes += itemBytes
      bytes += itemBytes
      size += 1
    },

    next(canStart) {
      while (first !== null) {
        const line: Line<T> = first
        leaveRing(line)
        if (!canStart(line.endpointKey)) continue
        const entry = popFirst(line.heap)!
        account(line, entry)
        if (line.heap.length > 0) enterRing(line)
        else lines.delete(line.endpointKey)
        return entry
      }
      return null
    },

    unblock(endpointKey) {
      const line = lines.get(endpointKey)
      if (line !== undefined && !line.isReady) enterRing(line)
    },

    takeYoungest(endpointKey, count) {
      const taken: Queued<T>[] = []
      const line = lines.get(endpointKey)
      if (line === undefined) return taken
      while (taken.length < count) {
        const entry = popLast(line.heap)
        if (entry === undefined) break
        account(line, entry)
        taken.push(entry)
      }
      forgetIfEmpty(line)
      return taken
    },

    removeWhere(isLost) {
      const removed: Queued<T>[] = []
      for (const line of lines.values()) {
        for (const entry of removeEntries(line.heap, (waiting) => isLost(waiting.item))) {
          account(line, entry)
          removed.push(entry)
        }
        forgetIfEmpty(line)
      }
      return removed
    },
  }
}
