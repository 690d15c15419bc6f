/** What one endpoint holds of the window of a process, in flight included. */
export type Holding = {
  readonly heldCount: number
  readonly heldBytes: number
  /** Bytes of unfinished deliveries the process may hold in all. */
  readonly windowBytes: number
  /** See completion-rate.ts; null while it is not known. */
  readonly recentRatePerSecond: number | null
}

/** An endpoint may hold 1/8 of the window whatever its pace. */
const windowShare = 8
/** And more than that if it is through within this time. */
const throughWithinSeconds = 1

/**
 * How many of an endpoint's deliveries, youngest first, are to be parked so that one slow endpoint does not fill the window and
 * hold up all others: those beyond an eighth of the window that would not be through in a second. 0 where none are. While the rate
 * is not known nothing is parked: that lasts for a second of backlog.
 */
export function countToPark({ heldCount, heldBytes, windowBytes, recentRatePerSecond }: Holding): number {
  const excessBytes = heldBytes - windowBytes / windowShare
  if (excessBytes <= 0 || recentRatePerSecond === null) return 0
  const excessCount = Math.ceil((excessBytes / heldBytes) * heldCount)
  const throughCount = Math.floor(recentRatePerSecond * throughWithinSeconds)
  return Math.max(0, Math.min(excessCount, heldCount - throughCount))
}

export function shouldPark(holding: Holding): boolean {
  return countToPark(holding) > 0
}

/**
 * How long a delivery is parked for the `timesParked`-th time (from 1) for holding too much of the window.
 * `delaysMs`: first time, second time ..., the last one again and again; at least one.
 */
export function parkDelayMs(timesParked: number, delaysMs: readonly number[]): number {
  const delayMs = delaysMs[Math.max(0, Math.min(timesParked, delaysMs.length) - 1)]
  if (delayMs === undefined) throw new Error('There is no delay to park for: configure at least one.')
  return delayMs
}
