/** What is known at one moment of a run. Times in ms, of one monotonic clock. */
export type Look = {
  readonly now: number
  /** All events are sent and acknowledged. */
  readonly isSent: boolean
  /** Expected deliveries that are neither delivered nor dead. */
  readonly missing: number
  /** Requests, dead letters and settled deliveries seen so far: anything that moves. */
  readonly seen: number
  /** The services say that they have nothing under way. */
  readonly isIdle: boolean
}

/** `settled`: nothing is missing. `quiet`: something is, and nothing is under way that could bring it. `stuck`: it does not come. */
export type Verdict = 'going-on' | 'settled' | 'quiet' | 'stuck'

/** Longer than a record is between two services, acknowledged here and not yet read there. */
const quietMs = 5_000
/** Far longer than any wait of the sample, and than a service that was killed takes to own its partitions again. */
const stuckMs = 90_000

/** Tells when a run is over; to be asked again and again. */
export function createSettling(): (look: Look) => Verdict {
  let seenBefore = -1
  let fewestMissing = Infinity
  let movedAt = 0
  let settledAnyAt = 0
  let busyAt = 0
  return ({ now, isSent, missing, seen, isIdle }) => {
    if (seen !== seenBefore) movedAt = now
    if (!isSent || missing < fewestMissing) settledAnyAt = now
    if (!isIdle || !isSent) busyAt = now
    seenBefore = seen
    fewestMissing = isSent ? Math.min(fewestMissing, missing) : Infinity
    if (!isSent) return 'going-on'
    if (missing === 0) return 'settled'
    if (now - Math.max(movedAt, busyAt) >= quietMs) return 'quiet'
    return now - settledAnyAt >= stuckMs ? 'stuck' : 'going-on'
  }
}
