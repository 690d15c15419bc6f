/**
 * How many deliveries per second an endpoint completes while it has more than it can take at once.
 *
 * Its clock runs only while there is a backlog: an idle or half-idle endpoint completes what it is given, which says nothing
 * about how fast it could be. Completions and time both fade with the same constant, so their quotient is right from the start.
 */
export type CompletionRate = {
  /** To be called when deliveries begin or cease to wait because the endpoint is at its cap. */
  setBacklog(hasBacklog: boolean, now: number): void
  completed(now: number): void
  /** null until a second of backlog was observed: not known is not slow. */
  ratePerSecond(now: number): number | null
}

const timeConstantMs = 2000
const observedEnoughMs = 1000
/** After as long without a backlog the endpoint may be another one behind its name: what was observed no longer counts. */
const forgottenAfterMs = 60_000

export function createCompletionRate(): CompletionRate {
  let hasBacklogNow = false
  let lastAt = 0
  let observedMs = 0
  let fadedCount = 0
  let fadedMs = 0

  function advance(now: number): void {
    const elapsedMs = now - lastAt
    if (elapsedMs <= 0) return
    lastAt = now
    if (!hasBacklogNow) return
    const kept = Math.exp(-elapsedMs / timeConstantMs)
    fadedCount *= kept
    fadedMs = fadedMs * kept + timeConstantMs * (1 - kept)
    observedMs += elapsedMs
  }

  return {
    setBacklog(hasBacklog, now) {
      if (hasBacklog === hasBacklogNow) return
      if (hasBacklog && now - lastAt > forgottenAfterMs) {
        observedMs = 0
        fadedCount = 0
        fadedMs = 0
      }
      advance(now)
      hasBacklogNow = hasBacklog
    },
    completed(now) {
      if (!hasBacklogNow) return
      advance(now)
      fadedCount += 1
    },
    ratePerSecond(now) {
      // Without a backlog the clock stands still, and lastAt stays the end of the last one.
      if (hasBacklogNow) advance(now)
      return observedMs < observedEnoughMs ? null : (fadedCount / fadedMs) * 1000
    },
  }
}
