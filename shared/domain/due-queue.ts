import { popFirst, pushEntry, removeEntries } from './two-ended-heap.ts'
import type { Ranked } from './two-ended-heap.ts'

/** What waits in memory for its time: the earliest due first, and of those due together the one that came first. */
export type DueQueue<T> = {
  readonly size: number
  /** Epoch ms in broker time, of the earliest; null when nothing waits. */
  readonly nextDueAt: number | null
  /** O(log n). @throws when `dueAt` is not a number: it would never come up, and hold up what does */
  push(dueAt: number, item: T): void
  peek(): T | undefined
  /** The earliest, due or not. */
  pop(): T | undefined
  /** The earliest if it is due at `now`: never early. */
  popDue(now: number): T | undefined
  /** Takes out what belongs to lost partitions: O(n), once per rebalance. In no order. */
  removeWhere(isLost: (item: T) => boolean): T[]
}

type Due<T> = Ranked & { readonly item: T }

export function createDueQueue<T>(): DueQueue<T> {
  const heap: Due<T>[] = []
  let sequence = 0
  return {
    get size() {
      return heap.length
    },
    get nextDueAt() {
      return heap[0]?.rank ?? null
    },
    push(dueAt, item) {
      if (Number.isNaN(dueAt)) throw new Error('A due time is not a number: give what has none the time it was appended plus its delay.')
      sequence += 1
      pushEntry(heap, { rank: dueAt, sequence, item })
    },
    peek: () => heap[0]?.item,
    pop: () => popFirst(heap)?.item,
    popDue: (now) => (heap.length > 0 && heap[0]!.rank <= now ? popFirst(heap)!.item : undefined),
    removeWhere: (isLost) => removeEntries(heap, (entry) => isLost(entry.item)).map((entry) => entry.item),
  }
}
