/**
 * A heap that gives its first and its last entry in O(log n) each: a min-max heap (Atkinson, Sack, Santoro and Strothotte, 1986) in
 * a plain array. Even levels hold what comes before everything below it, odd levels what comes after everything below it.
 * Functions over the caller's own array, so that a queue of one costs no more than its array.
 */

/** Order: by `rank`, then by `sequence`. Pairs of the two must be unique, and neither NaN. */
export type Ranked = { readonly rank: number; readonly sequence: number }

export function pushEntry<E extends Ranked>(heap: E[], entry: E): void {
  heap.push(entry)
  let index = heap.length - 1
  if (index === 0) return
  const parent = (index - 1) >> 1
  let sign = signOf(index)
  if (compare(entry, heap[parent]!) * sign > 0) {
    swap(heap, index, parent)
    index = parent
    sign = -sign
  }
  while (index > 2) {
    const grandparent = (index - 3) >> 2
    if (compare(entry, heap[grandparent]!) * sign >= 0) return
    swap(heap, index, grandparent)
    index = grandparent
  }
}

export function popFirst<E extends Ranked>(heap: E[]): E | undefined {
  return removeAt(heap, 0)
}

export function popLast<E extends Ranked>(heap: E[]): E | undefined {
  if (heap.length < 3) return heap.pop()
  return removeAt(heap, compare(heap[1]!, heap[2]!) > 0 ? 1 : 2)
}

/** Takes out what `isUnwanted` says, in O(n), and gives it back in no order. */
export function removeEntries<E extends Ranked>(heap: E[], isUnwanted: (entry: E) => boolean): E[] {
  const removed: E[] = []
  let kept = 0
  for (const entry of heap) {
    if (isUnwanted(entry)) {
      removed.push(entry)
    } else {
      heap[kept] = entry
      kept += 1
    }
  }
  if (removed.length === 0) return removed
  heap.length = kept
  for (let index = (kept >> 1) - 1; index >= 0; index -= 1) sink(heap, index)
  return removed
}

function removeAt<E extends Ranked>(heap: E[], index: number): E | undefined {
  const entry = heap[index]
  const last = heap.pop()
  if (last === undefined || index === heap.length) return entry
  heap[index] = last
  sink(heap, index)
  return entry
}

function sink(heap: Ranked[], from: number): void {
  const sign = signOf(from)
  let index = from
  for (;;) {
    const next = outermostBelow(heap, index, sign)
    if (next < 0 || compare(heap[next]!, heap[index]!) * sign >= 0) return
    swap(heap, next, index)
    if (next <= 2 * index + 2) return
    const parent = (next - 1) >> 1
    if (compare(heap[next]!, heap[parent]!) * sign > 0) swap(heap, next, parent)
    index = next
  }
}

/** Of the children and grandchildren of `index`, the one that comes first (sign 1) or last (sign -1); -1 where there are none. */
function outermostBelow(heap: readonly Ranked[], index: number, sign: number): number {
  const child = 2 * index + 1
  if (child >= heap.length) return -1
  let best = child
  if (child + 1 < heap.length && compare(heap[child + 1]!, heap[best]!) * sign < 0) best = child + 1
  const grandchild = 2 * child + 1
  const end = Math.min(grandchild + 4, heap.length)
  for (let i = grandchild; i < end; i += 1) {
    if (compare(heap[i]!, heap[best]!) * sign < 0) best = i
  }
  return best
}

function compare(a: Ranked, b: Ranked): number {
  return a.rank === b.rank ? a.sequence - b.sequence : a.rank < b.rank ? -1 : 1
}

/** 1 on even levels, -1 on odd ones; the root is level 0. */
function signOf(index: number): number {
  return (31 - Math.clz32(index + 1)) % 2 === 0 ? 1 : -1
}

function swap(heap: Ranked[], a: number, b: number): void {
  const entry = heap[a]!
  heap[a] = heap[b]!
  heap[b] = entry
}
