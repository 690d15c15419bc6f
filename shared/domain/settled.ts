import { createHash } from 'node:crypto'

/** Bytes of a key that count: 128 bits. Two deliveries with one key would lose one of them; at 250,000 kept it is 1 in 10^28. */
const keyBytes = 16

/**
 * What a delivery's repeats have in common: 16 bytes of SHA-256 over the delivery id, its length before it, and the body.
 * The body is in it because a producer may, wrongly, send two different events under one id: both are delivered.
 */
export function settledKey(deliveryId: string, body: Uint8Array): Buffer {
  const hash = createHash('sha256')
  hash.update(`${deliveryId.length}:${deliveryId}`)
  hash.update(body)
  return hash.digest().subarray(0, keyBytes)
}

/**
 * The deliveries settled last, with the highest (replay, attempt) of each: a record at or below that is a repeat.
 * Recorded only once the outcome of an HTTP attempt is acknowledged, never when a delivery is parked.
 */
export type Settled = {
  /** Keys held now: those of the last `capacity` calls of record. */
  readonly size: number
  /** Memory taken, all of it at creation. */
  readonly bytes: number
  /** `key`: at least 16 bytes that are themselves a hash. `attempt`: the number of the attempt whose outcome was acknowledged. */
  record(key: Uint8Array, replay: number, attempt: number): void
  isSettled(key: Uint8Array, replay: number, attempt: number): boolean
}

/**
 * Typed arrays: a ring of `capacity` slots, oldest overwritten, found through an open-addressed table at most half full.
 * 250,000 take 8.1 MB and no garbage (a Map keyed by text: some 40 MB, walked by each major collection).
 */
export function createSettled({ capacity = 250_000 }: { readonly capacity?: number } = {}): Settled {
  const tableSize = 2 ** Math.max(1, Math.ceil(Math.log2(capacity * 2)))
  const mask = tableSize - 1
  const table = new Int32Array(tableSize) // slot + 1; 0 = empty
  const keys = new Uint32Array(capacity * 4)
  const replays = new Uint32Array(capacity)
  const attempts = new Uint32Array(capacity)
  const wanted = new Uint32Array(4)
  let nextSlot = 0
  let slotsUsed = 0
  let size = 0

  function want(key: Uint8Array): void {
    if (key.length < keyBytes) throw new Error(`A settled key has ${key.length} bytes, and needs ${keyBytes}: make it with settledKey.`)
    for (let word = 0; word < 4; word += 1) {
      const at = word * 4
      wanted[word] = key[at]! | (key[at + 1]! << 8) | (key[at + 2]! << 16) | (key[at + 3]! << 24)
    }
  }

  /** Place in the table of the wanted key, or of the empty place where it would go. */
  function findPlace(): number {
    let place = wanted[0]! & mask
    for (;;) {
      const slot = table[place]! - 1
      if (slot < 0) return place
      const at = slot * 4
      if (keys[at] === wanted[0] && keys[at + 1] === wanted[1] && keys[at + 2] === wanted[2] && keys[at + 3] === wanted[3]) return place
      place = (place + 1) & mask
    }
  }

  /** Empties a place and moves later ones of its chain up, so that no search stops short of what it looks for. */
  function vacate(place: number): void {
    let hole = place
    for (let next = (hole + 1) & mask; table[next] !== 0; next = (next + 1) & mask) {
      const home = keys[(table[next]! - 1) * 4]! & mask
      if (((next - home) & mask) < ((next - hole) & mask)) continue
      table[hole] = table[next]!
      hole = next
    }
    table[hole] = 0
  }

  function evict(slot: number): void {
    for (let place = keys[slot * 4]! & mask; table[place] !== 0; place = (place + 1) & mask) {
      if (table[place] !== slot + 1) continue
      vacate(place)
      size -= 1
      return
    }
    // Not in the table: its key was recorded again since, and lives in a later slot.
  }

  return {
    get size() {
      return size
    },
    bytes: (tableSize + capacity * 6) * 4,

    record(key, replay, attempt) {
      if (slotsUsed === capacity) evict(nextSlot)
      else slotsUsed += 1
      want(key)
      const place = findPlace()
      const old = table[place]! - 1
      const slot = nextSlot
      nextSlot = (nextSlot + 1) % capacity
      const isOldHigher = old >= 0 && isAtMost(replay, attempt, replays[old]!, attempts[old]!)
      replays[slot] = isOldHigher ? replays[old]! : replay
      attempts[slot] = isOldHigher ? attempts[old]! : attempt
      keys.set(wanted, slot * 4)
      table[place] = slot + 1
      if (old < 0) size += 1
    },

    isSettled(key, replay, attempt) {
      want(key)
      const slot = table[findPlace()]! - 1
      return slot >= 0 && isAtMost(replay, attempt, replays[slot]!, attempts[slot]!)
    },
  }
}

function isAtMost(replay: number, attempt: number, highestReplay: number, highestAttempt: number): boolean {
  return replay < highestReplay || (replay === highestReplay && attempt <= highestAttempt)
}
