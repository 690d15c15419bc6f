import type { ClaimRequest, ClaimResult, HeldClaim, Store, StoredAnswer } from './store.ts'

export type MemoryStoreOptions = {
  /** Keys held at most. Default 100,000. */
  readonly maxEntries?: number
  /** Keys and answers held at most, bytes, roughly. Default 64 MiB. */
  readonly maxBytes?: number
  /** Milliseconds of a clock that is never set back, for tests. */
  readonly now?: () => number
}

export type MemoryStore = Store & {
  readonly size: number
  /** Finished keys forgotten before their ttl for want of room. Above 0 the bounds are too small: their repeats would run again. */
  readonly forgottenEarly: number
}

type Entry = {
  readonly key: string
  readonly fingerprint: string
  readonly requestId: string
  readonly token: number
  readonly lockUntil: number
  readonly expiresAt: number
  readonly answer: StoredAnswer | null
}

/** Of the maps, the strings' headers and the objects: measured about 500 bytes an entry. */
const entryBytes = 500

/**
 * For tests, and for one process that may forget everything when it ends. What runs is never forgotten; of what is finished the
 * oldest goes first when there is no room.
 */
export function memoryStore({ maxEntries = 100_000, maxBytes = 64 * 1024 * 1024, now = () => performance.now() }: MemoryStoreOptions = {}): MemoryStore {
  if (!(maxEntries >= 1 && maxBytes >= 1)) throw new RangeError('maxEntries and maxBytes must be at least 1')
  // Two maps, each with the oldest first: with one ttl for all that is also the order in which they expire.
  const running = new Map<string, Entry>()
  const finished = new Map<string, Entry>()
  let lastToken = 0
  let bytes = 0
  let forgottenEarly = 0

  const remove = (map: Map<string, Entry>, entry: Entry): void => {
    if (map.delete(entry.key)) bytes -= weightOf(entry)
  }
  const add = (map: Map<string, Entry>, entry: Entry): void => {
    map.set(entry.key, entry)
    bytes += weightOf(entry)
  }
  const sweep = (): void => {
    for (const map of [running, finished]) {
      for (const entry of map.values()) {
        if (entry.expiresAt > now()) break
        remove(map, entry)
      }
    }
  }
  const makeRoom = (): void => {
    for (const entry of finished.values()) {
      if (running.size + finished.size <= maxEntries && bytes <= maxBytes) return
      remove(finished, entry)
      forgottenEarly += 1
    }
  }
  const find = (key: string): Entry | null => {
    const entry = running.get(key) ?? finished.get(key)
    if (entry === undefined) return null
    if (entry.expiresAt > now()) return entry
    remove(entry.answer === null ? running : finished, entry)
    return null
  }

  const claim = ({ key, fingerprint, requestId, lockMs, ttlMs }: ClaimRequest): ClaimResult => {
    sweep()
    const held = find(key)
    if (held !== null) {
      if (held.fingerprint !== fingerprint) return { state: 'conflict', requestId: held.requestId }
      if (held.answer !== null) return { state: 'finished', requestId: held.requestId, answer: held.answer }
      const retryAfterMs = held.lockUntil - now()
      if (retryAfterMs > 0) return { state: 'running', requestId: held.requestId, retryAfterMs }
      remove(running, held)
    }
    if (running.size >= maxEntries) throw new Error(`the memory store holds ${running.size} running claims, its limit: raise maxEntries`)
    lastToken += 1
    add(running, { key, fingerprint, requestId, token: lastToken, lockUntil: now() + lockMs, expiresAt: now() + ttlMs, answer: null })
    makeRoom()
    return { state: 'claimed', token: lastToken }
  }

  const finish = ({ key, token, ttlMs }: HeldClaim, answer: StoredAnswer): boolean => {
    const held = find(key)
    if (held?.token !== token) return false
    remove(held.answer === null ? running : finished, held)
    // A copy, which a Buffer's `slice` would not be.
    add(finished, { ...held, expiresAt: now() + ttlMs, answer: { ...answer, body: new Uint8Array(answer.body) } })
    makeRoom()
    return true
  }

  const release = ({ key, token }: HeldClaim): boolean => {
    const held = find(key)
    if (held?.token !== token || held.answer !== null) return false
    remove(running, held)
    return true
  }

  return {
    claim: async (request) => claim(request),
    finish: async (held, answer) => finish(held, answer),
    release: async (held) => release(held),
    get size() {
      return running.size + finished.size
    },
    get forgottenEarly() {
      return forgottenEarly
    },
  }
}

function weightOf({ key, answer }: Entry): number {
  return entryBytes + 2 * key.length + (answer?.body.byteLength ?? 0)
}
