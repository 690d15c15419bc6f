/** What one endpoint holds of the window of a process, in flight included. */
export type Holding = {
  readonly heldCount: number
  readonly heldBytes: number
  /** Bytes of unfinished deliveries the process may hold in all. */
  readonly windowBytes: number
  /** Endpoints that hold any of it. */
  readonly endpointCount: number
  /** See completion-rate.ts; null while it is not known. */
  readonly recentRatePerSecond: number | null
}

/** What an endpoint may hold whatever its pace; and more than that if it is through within this time. */
type Allowance = { readonly shareBytes: number; readonly throughWithinSeconds: number }

const allowancesOf = (windowBytes: number, endpointCount: number): readonly Allowance[] => [
  { shareBytes: windowBytes / 8, throughWithinSeconds: 1 },
  // Eight that are slow, or a hundred, would fill it all the same, each within its eighth: those that take minutes have half of it
  // among them. What is through in a minute frees the window by itself, and is better sent than parked.
  { shareBytes: windowBytes / 2 / endpointCount, throughWithinSeconds: 60 },
]

/**
 * How many of an endpoint's deliveries, youngest first, are to be parked so that slow endpoints do not fill the window and hold up
 * all others: those beyond an eighth of the window that would not be through in a second, or beyond an even part of half of it that
 * would not be through in a minute. 0 where none are. While the rate is not known nothing is parked: that lasts for a second of backlog.
 */
export function countToPark({ heldCount, heldBytes, windowBytes, endpointCount, recentRatePerSecond }: Holding): number {
  if (recentRatePerSecond === null) return 0
  return Math.max(...allowancesOf(windowBytes, endpointCount).map(({ shareBytes, throughWithinSeconds }) => {
    const excessCount = Math.ceil(((heldBytes - shareBytes) / heldBytes) * heldCount)
    return Math.max(0, Math.min(excessCount, heldCount - Math.floor(recentRatePerSecond * throughWithinSeconds)))
  }))
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
