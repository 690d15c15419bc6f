/**
 * The quiet an endpoint asked for (429 or 503 with Retry-After), and the line of those that wait for its end.
 *
 * When it is over, those that waited must not come at once and break it again. Each is given its own due time, spaced by the rate
 * the endpoint bore before, and so that no second holds more than about a tenth of them: at the n-th place the pace is
 *   at least 1 a second, a 12th of those that waited when the quiet began, a 12th of n (so the pace grows with a longer line)
 *   at most the rate before the quiet.
 * The line has no jitter, as no two have one place. It only grows at its end: those placed before the quiet was made longer
 * keep their time, and where that comes too early they are placed again.
 */
export type Throttle = {
  /** Epoch ms, by the clock of `now`; null when there never was one. For the endpoint-health record, with the next. */
  readonly throttledUntil: number | null
  /** The most that leave the line per second; null when there never was a throttle. */
  readonly ratePerSecond: number | null
  isThrottled(now: number): boolean
  /**
   * Makes the quiet last until at least now + throttleMs. True: write it at once (it began, or ends over a second later than when
   * last written). When it begins, call EndpointCap.afterThrottle too.
   */
  throttle(request: ThrottleRequest): boolean
  /** The due time (epoch ms, whole) of the next delivery that waits for the end; the first one's is the end itself. */
  placeInLine(now: number): number
}

export type ThrottleRequest = {
  readonly now: number
  readonly throttleMs: number
  /** Completions per second before; null where not known. */
  readonly recentRatePerSecond: number | null
  /** Deliveries of the endpoint now in hand, in flight included: about as many will stand in the line. */
  readonly heldCount: number
}

const minRatePerSecond = 1
/** Beyond it the endpoint's cap, from 1, and parking do better than a timetable. */
const maxRatePerSecond = 1000
const assumedRatePerSecond = 50
/** A tenth is promised; a twelfth leaves room for those that come from a tier a little late. */
const shareOfASecond = 12
const rewriteAfterMs = 1000

/** `restored`: from the endpoint-health record; the line itself is not kept, so a new owner begins it at its start. */
export function createThrottle(restored?: { readonly throttledUntil: number | null; readonly throttleRatePerSecond: number | null }): Throttle {
  let throttledUntil = restored?.throttledUntil ?? null
  let ratePerSecond = throttledUntil === null ? null : bounded(restored?.throttleRatePerSecond ?? null)
  let writtenUntil = throttledUntil ?? Number.NEGATIVE_INFINITY
  let leastRatePerSecond = minRatePerSecond
  let placed = 0
  let lineEndsAt = Number.NEGATIVE_INFINITY

  const isThrottled = (now: number) => throttledUntil !== null && now < throttledUntil

  return {
    get throttledUntil() {
      return throttledUntil
    },
    get ratePerSecond() {
      return ratePerSecond
    },
    isThrottled,

    throttle({ now, throttleMs, recentRatePerSecond, heldCount }) {
      if (throttleMs <= 0) return false
      const isNew = !isThrottled(now)
      if (isNew) {
        // Once quiet, the rate falls by itself: what counts is the one before.
        ratePerSecond = bounded(recentRatePerSecond)
        leastRatePerSecond = minRatePerSecond
        placed = 0
      }
      leastRatePerSecond = Math.max(leastRatePerSecond, heldCount / shareOfASecond)
      throttledUntil = Math.max(throttledUntil ?? now, now + throttleMs)
      if (!isNew && throttledUntil <= writtenUntil + rewriteAfterMs) return false
      writtenUntil = throttledUntil
      return true
    },

    placeInLine(now) {
      const paceBySize = Math.max(leastRatePerSecond, placed / shareOfASecond)
      const pace = Math.min(ratePerSecond ?? assumedRatePerSecond, paceBySize)
      placed += 1
      lineEndsAt = Math.max(lineEndsAt + 1000 / pace, throttledUntil ?? now, now)
      return Math.ceil(lineEndsAt)
    },
  }
}

function bounded(ratePerSecond: number | null): number {
  return Math.min(maxRatePerSecond, Math.max(minRatePerSecond, ratePerSecond ?? assumedRatePerSecond))
}
