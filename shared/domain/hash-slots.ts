import { hash } from 'node:crypto'

/** Bytes of a key's hash that count: 128 bits. Two keys with one hash would hide one of them; among a million it is 1 in 10^26. */
const hashWords = 4

/**
 * Numbers keys from 0 in the order they come, so that what belongs to a key is kept in typed arrays beside it: 24 to 48 bytes a key
 * and nothing for the garbage collector to walk, where a Map of texts takes some 150. Keys are never taken out.
 */
export type HashSlots = {
  readonly size: number
  /** How many there is room for before the next growth: the length that arrays beside it need. */
  readonly capacity: number
  /** -1 where the key is none of them. */
  find(key: Uint8Array | string): number
  /** The key's slot, a new one where it had none. */
  take(key: Uint8Array | string): number
}

export function createHashSlots({ capacity: first = 1024 }: { readonly capacity?: number } = {}): HashSlots {
  let capacity = first
  let size = 0
  let hashes = new Uint32Array(capacity * hashWords)
  let table = emptyTable(capacity)
  const wanted = new Uint32Array(hashWords)

  function want(key: Uint8Array | string): void {
    const digest = hash('sha256', key, 'buffer')
    for (let word = 0; word < hashWords; word += 1) wanted[word] = digest.readUInt32LE(word * 4)
  }

  /** Where in the table the wanted hash is, or the empty place where it would go: open addressing, at most half full. */
  function placeOf(): number {
    const mask = table.length - 1
    for (let place = wanted[0]! & mask; ; place = (place + 1) & mask) {
      const slot = table[place]! - 1
      if (slot < 0) return place
      const at = slot * hashWords
      if (hashes[at] === wanted[0] && hashes[at + 1] === wanted[1] && hashes[at + 2] === wanted[2] && hashes[at + 3] === wanted[3]) return place
    }
  }

  function grow(): void {
    capacity *= 2
    const grown = new Uint32Array(capacity * hashWords)
    grown.set(hashes)
    hashes = grown
    table = emptyTable(capacity)
    const mask = table.length - 1
    for (let slot = 0; slot < size; slot += 1) {
      let place = hashes[slot * hashWords]! & mask
      while (table[place] !== 0) place = (place + 1) & mask
      table[place] = slot + 1
    }
  }

  return {
    get size() {
      return size
    },
    get capacity() {
      return capacity
    },
    find(key) {
      want(key)
      return table[placeOf()]! - 1
    },
    take(key) {
      want(key)
      const found = table[placeOf()]! - 1
      if (found >= 0) return found
      if (size === capacity) grow()
      table[placeOf()] = size + 1
      hashes.set(wanted, size * hashWords)
      size += 1
      return size - 1
    },
  }
}

/** Slot + 1 by the hash's first bits; 0 is empty. */
function emptyTable(capacity: number): Int32Array<ArrayBuffer> {
  return new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2)))
}
