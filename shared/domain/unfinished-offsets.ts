/**
 * The unfinished offsets of one partition, in order. Added upwards, removed in any order; no garbage per offset.
 *
 * Begun offsets lie upwards in [head, tail) of a typed array; removed ones are flagged, and go when the head passes them or when
 * the array is packed. Packing frees at least half of it, so add and remove cost O(1) and O(log n) on average, and memory
 * follows the most that were ever unfinished at once.
 */
export type UnfinishedOffsets = {
  readonly count: number
  readonly lowest: number | null
  /** `offset` must be above all that were ever added. */
  add(offset: number): void
  /** False where it is not there. */
  remove(offset: number): boolean
  has(offset: number): boolean
  /**
   * The runs between the unfinished ones, from the lowest to `end`: start, end (exclusive), start, end ... upwards; empty where
   * none is unfinished. May stop early, at what cannot be said in `maxCharacters` in any form of the done set.
   */
  runsBetween(end: number, maxCharacters: number): number[]
}

const firstCapacity = 64

export function createUnfinishedOffsets(): UnfinishedOffsets {
  let offsets = new Float64Array(firstCapacity)
  let removed = new Uint8Array(firstCapacity)
  let head = 0
  let tail = 0
  let count = 0

  function indexOf(offset: number): number {
    let low = head
    let high = tail
    while (low < high) {
      const middle = (low + high) >>> 1
      if (offsets[middle]! < offset) low = middle + 1
      else high = middle
    }
    return low < tail && offsets[low] === offset && removed[low] === 0 ? low : -1
  }

  function pack(): void {
    const from = offsets
    if (count * 2 > offsets.length) offsets = new Float64Array(offsets.length * 2)
    let next = 0
    for (let i = head; i < tail; i += 1) {
      if (removed[i] === 1) continue
      offsets[next] = from[i]!
      next += 1
    }
    if (removed.length === offsets.length) removed.fill(0)
    else removed = new Uint8Array(offsets.length)
    head = 0
    tail = next
  }

  return {
    get count() {
      return count
    },
    get lowest() {
      return count > 0 ? offsets[head]! : null
    },

    add(offset) {
      if (tail === offsets.length) pack()
      offsets[tail] = offset
      tail += 1
      count += 1
    },

    remove(offset) {
      const index = indexOf(offset)
      if (index < 0) return false
      removed[index] = 1
      count -= 1
      // The head never rests on a removed one, and flags outside of [head, tail) are clear.
      for (; head < tail && removed[head] === 1; head += 1) removed[head] = 0
      if (head === tail) {
        head = 0
        tail = 0
      }
      return true
    },

    has: (offset) => indexOf(offset) >= 0,

    runsBetween(end, maxCharacters) {
      const runs: number[] = []
      if (count === 0) return runs
      if (tail - head > count * 2 + firstCapacity) pack()
      const base = offsets[head]!
      let start = base + 1
      for (let i = head + 1; i < tail; i += 1) {
        if (removed[i] === 1) continue
        if (offsets[i]! > start) runs.push(start, offsets[i]!)
        start = offsets[i]! + 1
        // A run takes more than a character, and a character holds 6 bits.
        if (runs.length > maxCharacters * 2 && start - base > maxCharacters * 6) return runs
      }
      if (end > start) runs.push(start, end)
      return runs
    },
  }
}
