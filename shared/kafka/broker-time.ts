/**
 * The brokers' clock, known between two bounds. A produce to a LogAppendTime topic is stamped between its sending and its
 * acknowledgement, with the milliseconds cut off, so each one gives an upper and a lower bound of (broker time - local time).
 * Whoever writes a due time takes the upper bound, whoever waits for one takes the lower: never early, whatever the true clock is.
 */
export type BrokerTime = {
  /** One acknowledged produce: local times on the monotonic clock (ms, fractions allowed), `logAppendTime` epoch ms. */
  sample(sentAt: number, acknowledgedAt: number, logAppendTime: number): void
  /** Monotonic now, for `sample`. */
  localNow(): number
  /** Epoch ms, at or after the true broker time: for who writes a due time. */
  nowForDue(): number
  /** Epoch ms, at or before the true broker time: for who waits for a due time. */
  nowForWait(): number
  /** Broker time (middle of the bounds) minus this machine's wall clock, ms; 0 before the first sample. */
  skewMs(): number
  /** Distance of the bounds, ms; negative where the brokers' clocks differ among themselves; null before the first sample. */
  uncertaintyMs(): number | null
}

/** Bounds of (broker time - local monotonic time), ms. */
type Bounds = { readonly lower: number; readonly upper: number }
type Bucket = { readonly number: number; lower: number; upper: number }

const windowMs = 5 * 60_000
const bucketMs = 10_000

/** Both clocks in ms; given only by tests. Before the first sample the wall clock stands for both bounds. */
export function createBrokerTime(clocks: { readonly monotonicNow?: () => number; readonly wallNow?: () => number } = {}): BrokerTime {
  const monotonicNow = clocks.monotonicNow ?? (() => performance.now())
  const wallNow = clocks.wallNow ?? (() => Date.now())
  /** At most one a bucket of the window, oldest first: memory stays the same whatever is sampled. */
  let buckets: Bucket[] = []
  let bounds: Bounds | null = null

  /** The window ends at the newest sample: while none come, the last ones are kept. */
  const sample = (sentAt: number, acknowledgedAt: number, logAppendTime: number): void => {
    if (!(acknowledgedAt >= sentAt) || !Number.isFinite(logAppendTime) || logAppendTime < 0) return
    const lower = logAppendTime - acknowledgedAt
    const upper = logAppendTime + 1 - sentAt
    const number = Math.floor(acknowledgedAt / bucketMs)
    const last = buckets.at(-1)
    if (last && last.number >= number) {
      last.lower = Math.max(last.lower, lower)
      last.upper = Math.min(last.upper, upper)
      if (bounds) bounds = { lower: Math.max(bounds.lower, lower), upper: Math.min(bounds.upper, upper) }
      return
    }
    buckets = [...buckets.filter((bucket) => (number - bucket.number) * bucketMs < windowMs), { number, lower, upper }]
    bounds = {
      lower: Math.max(...buckets.map((bucket) => bucket.lower)),
      upper: Math.min(...buckets.map((bucket) => bucket.upper)),
    }
  }

  return {
    sample,
    localNow: monotonicNow,
    nowForDue: () => (bounds ? monotonicNow() + bounds.upper : wallNow()),
    nowForWait: () => (bounds ? monotonicNow() + bounds.lower : wallNow()),
    skewMs: () => (bounds ? monotonicNow() + (bounds.lower + bounds.upper) / 2 - wallNow() : 0),
    uncertaintyMs: () => (bounds ? bounds.upper - bounds.lower : null),
  }
}
