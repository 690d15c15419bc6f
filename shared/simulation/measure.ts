import type { SimulatedJitter, SimulationModel } from './model.ts'
import type { Simulated } from './simulate.ts'

export type Measured = {
  readonly jitter: SimulatedJitter
  readonly delivered: number
  readonly dead: Simulated['dead']
  readonly deliveredShare: number
  /** Wilson's 95 % interval of that share. */
  readonly interval: readonly [number, number]
  /** Of those delivered; null where none was. */
  readonly timeToDeliveryMs: { readonly p50: number; readonly p99: number; readonly max: number } | null
  readonly attempts: { readonly mean: number; readonly p50: number; readonly p99: number; readonly max: number }
  readonly requests: {
    readonly total: number
    /** Those that the endpoint sees once the outage is over (all of them where there was none). */
    readonly afterOutage: number
    /** The most in any one second, and in any minute, of these. */
    readonly peakPerSecond: number
    readonly busiestMinute: number
    /** When the last of them came, ms after the outage. */
    readonly lastMs: number
  }
}

export function measure(model: SimulationModel, run: Simulated): Measured {
  const times = Float64Array.from(run.timesToDeliveryMs).sort()
  const attempts = Float64Array.from(run.attempts).sort()
  const seen = requestsAfterOutage(model, run)
  return {
    jitter: run.jitter, delivered: run.delivered, dead: run.dead,
    deliveredShare: run.delivered / model.deliveries,
    interval: wilsonInterval(run.delivered, model.deliveries),
    timeToDeliveryMs: times.length === 0 ? null : { p50: quantile(times, 0.5), p99: quantile(times, 0.99), max: times.at(-1)! },
    attempts: {
      mean: attempts.reduce((sum, count) => sum + count, 0) / attempts.length, p50: quantile(attempts, 0.5), p99: quantile(attempts, 0.99), max: attempts.at(-1)!,
    },
    requests: {
      total: run.requestsAt.length, afterOutage: seen.length, peakPerSecond: most(seen, 1_000), busiestMinute: most(seen, 60_000), lastMs: seen.at(-1) ?? 0,
    },
  }
}

/** Ms after the outage, in order. */
export function requestsAfterOutage({ outageMs }: SimulationModel, { requestsAt }: Simulated): readonly number[] {
  return requestsAt.filter((at) => at >= outageMs).map((at) => at - outageMs)
}

/** The busiest second of each of `count` columns of `columnMs`, requests in it. */
export function peaksByColumn(requests: readonly number[], columnMs: number, count: number): readonly number[] {
  const peaks = Array.from({ length: count }, () => 0)
  let [second, inSecond] = [-1, 0]
  for (const at of requests) {
    inSecond = Math.floor(at / 1_000) === second ? inSecond + 1 : 1
    second = Math.floor(at / 1_000)
    const column = Math.min(count - 1, Math.floor(at / columnMs))
    peaks[column] = Math.max(peaks[column]!, inSecond)
  }
  return peaks
}

/** The most that fall into one span of `spanMs`, wherever it begins. */
function most(sorted: readonly number[], spanMs: number): number {
  let [greatest, first] = [0, 0]
  for (const [index, at] of sorted.entries()) {
    while (at - sorted[first]! >= spanMs) first += 1
    greatest = Math.max(greatest, index - first + 1)
  }
  return greatest
}

/** The smallest value that at least `share` of all do not exceed. */
function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

/**
 * Wilson's score interval (1927) of a share: unlike the usual one it holds near 0 and 1, where most shares of deliveries are.
 * `z`: 1.96 for 95 %.
 */
export function wilsonInterval(successes: number, trials: number, z = 1.96): readonly [number, number] {
  const share = successes / trials
  const spread = z * Math.sqrt((share * (1 - share)) / trials + z ** 2 / (4 * trials ** 2))
  const middle = share + z ** 2 / (2 * trials)
  const scale = 1 + z ** 2 / trials
  return [Math.max(0, (middle - spread) / scale), Math.min(1, (middle + spread) / scale)]
}
