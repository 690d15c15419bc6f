/**
 * Durations of attempts, seconds. 30 s is an edge, so that "timed out" and "slow" are not in one bucket; the last finite one is above it,
 * for a machine that stalls beyond the deadline.
 */
export const attemptSecondsBuckets: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60]

/** Short work of our own: produce requests, commits, hand-overs. Seconds. */
export const internalSecondsBuckets: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** How late something was that should have been on time, seconds: the promise is a poll and 1 % of the tier, at most 60 s. */
export const latenessSecondsBuckets: readonly number[] = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** Time from an event to its delivery, in seconds: below a minute finely, then with an edge at each tier, as that is where waits end, and at the expiry. */
export const waitingSecondsBuckets = (tiersMs: readonly number[], expiryMs: number): readonly number[] => {
  const edges = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, ...tiersMs.map((tierMs) => tierMs / 1000), expiryMs / 1000]
  return [...new Set(edges)].sort((a, b) => a - b)
}
