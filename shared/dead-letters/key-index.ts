import { createHashSlots } from '../domain/hash-slots.ts'
import { parseDeadLetterKey, type DeadLetterId } from './key.ts'

/**
 * What a record of `dlq` is worth now.
 * `open`: it is a dead letter. `superseded`: a later replay of the same delivery has one too, so it was replayed, and whoever did it was
 * killed before he could clear it. `cleared`: a tombstone follows it. `outdated`: the same dead letter was written again behind it.
 */
export type Standing =
  | { readonly kind: 'open' }
  | { readonly kind: 'superseded'; readonly byReplay: number }
  | { readonly kind: 'cleared'; readonly tombstoneOffset: number }
  | { readonly kind: 'outdated' }

export type Place = { readonly partition: number; readonly offset: number }

/**
 * The last record of each key of `dlq`: it says whether a record that is read is a dead letter still. Some 60 bytes a key, whatever
 * the dead letters weigh.
 */
export type KeyIndex = {
  /** Takes one record in; those of a partition in offset order. A key that is none of a dead letter is passed over. */
  apply(record: Place & { readonly key: Buffer | null; readonly isTombstone: boolean }): void
  /** Of a record that was read; null: it was written after what the index knows of, or its key is none. */
  standingOf(record: Place & { readonly key: Buffer | null }): Standing | null
  /** Keys whose last record is no tombstone, the superseded ones among them. */
  openCount(): number
  /** From the first to the last record of each partition that is not cleared, or that is there at all; none where there are none. */
  ranges(of: 'open' | 'all'): ReadonlyMap<number, { readonly first: number; readonly last: number }>
}

const open: Standing = { kind: 'open' }
const outdated: Standing = { kind: 'outdated' }

export function createKeyIndex(): KeyIndex {
  const keys = createHashSlots()
  /** Of each key: the last record that is a dead letter, and the tombstone behind it or -1. */
  let partitions = new Int32Array(keys.capacity)
  let offsets = new Float64Array(keys.capacity)
  let tombstones = new Float64Array(keys.capacity)
  /** The highest replay of a delivery, where there was one: most have none. */
  const replayed = createHashSlots()
  let highestReplays = new Float64Array(replayed.capacity)
  let openCount = 0

  function noteReplay(id: DeadLetterId): void {
    if (id.replay === 0) return
    const slot = replayed.take(id.deliveryId)
    if (slot >= highestReplays.length) highestReplays = grown(highestReplays, new Float64Array(replayed.capacity))
    highestReplays[slot] = Math.max(highestReplays[slot]!, id.replay)
  }

  return {
    apply({ partition, offset, key, isTombstone }) {
      const id = key && parseDeadLetterKey(key.toString())
      if (key === null || id === null) return
      noteReplay(id)
      if (isTombstone) {
        const slot = keys.find(key)
        // Compaction may have taken the dead letter before its tombstone.
        if (slot < 0) return
        if (tombstones[slot]! < 0) openCount -= 1
        tombstones[slot] = offset
        return
      }
      const before = keys.size
      const slot = keys.take(key)
      if (slot >= offsets.length) {
        partitions = grown(partitions, new Int32Array(keys.capacity))
        offsets = grown(offsets, new Float64Array(keys.capacity))
        tombstones = grown(tombstones, new Float64Array(keys.capacity))
      }
      if (keys.size > before || tombstones[slot]! >= 0) openCount += 1
      partitions[slot] = partition
      offsets[slot] = offset
      tombstones[slot] = -1
    },

    standingOf({ partition, offset, key }) {
      const slot = key === null ? -1 : keys.find(key)
      if (slot < 0 || key === null || partitions[slot] !== partition || offset > offsets[slot]!) return null
      if (offset < offsets[slot]!) return outdated
      if (tombstones[slot]! >= 0) return { kind: 'cleared', tombstoneOffset: tombstones[slot]! }
      const id = parseDeadLetterKey(key.toString())
      const later = id === null ? -1 : replayed.find(id.deliveryId)
      return id !== null && later >= 0 && highestReplays[later]! > id.replay ? { kind: 'superseded', byReplay: highestReplays[later]! } : open
    },

    openCount: () => openCount,

    ranges(of) {
      const ranges = new Map<number, { first: number; last: number }>()
      for (let slot = 0; slot < keys.size; slot += 1) {
        if (of === 'open' && tombstones[slot]! >= 0) continue
        const offset = offsets[slot]!
        const range = ranges.get(partitions[slot]!)
        if (!range) ranges.set(partitions[slot]!, { first: offset, last: offset })
        else {
          range.first = Math.min(range.first, offset)
          range.last = Math.max(range.last, offset)
        }
      }
      return ranges
    },
  }
}

function grown<Values extends Int32Array<ArrayBuffer> | Float64Array<ArrayBuffer>>(from: Values, to: Values): Values {
  to.set(from)
  return to
}
