import { waitRange, type WaitRange } from './backoff.ts'
import type { Policy } from './policy.ts'

/** When attempts begin, ms after the beginning of the first: as a policy plans it, and its bounds. */
export type TimeRange = WaitRange

export type PlannedAttempt = {
  /** Counted from 1. */
  readonly attempt: number
  /** The wait before it, from the end of the attempt before; null for the first. */
  readonly wait: WaitRange | null
  readonly begins: TimeRange
}

/** From the beginning of the first attempt to the end of the last, where all fail; ms. */
export type TimeBudget = { readonly nominalMs: number; readonly bestMs: number; readonly worstMs: number }

const atOnce: TimeRange = { earliestMs: 0, nominalMs: 0, latestMs: 0 }

/**
 * Every attempt of a delivery that never succeeds. At the earliest each attempt fails at once, at the latest it takes its whole
 * timeout. Not in it: a Retry-After, which can lengthen each wait to a day, waiting for a paused, throttled or busy endpoint,
 * and what a stay in a tier may end late.
 */
export function timetable(policy: Policy): readonly PlannedAttempt[] {
  const attempts: PlannedAttempt[] = [{ attempt: 1, wait: null, begins: atOnce }]
  let [wait, begins]: [WaitRange | null, TimeRange] = [null, atOnce]
  for (let made = 1; made < policy.maxAttempts; made += 1) {
    wait = waitRange(policy, made, wait)
    begins = {
      earliestMs: begins.earliestMs + wait.earliestMs,
      nominalMs: begins.nominalMs + wait.nominalMs,
      latestMs: begins.latestMs + policy.timeoutMs + wait.latestMs,
    }
    attempts.push({ attempt: made + 1, wait, begins })
  }
  return attempts
}

export function timeBudget(policy: Policy): TimeBudget {
  const { earliestMs, nominalMs, latestMs } = timetable(policy).at(-1)?.begins ?? atOnce
  return { nominalMs: Math.round(nominalMs), bestMs: Math.floor(earliestMs), worstMs: Math.round(latestMs + policy.timeoutMs) }
}

/** From the first attempt to the last, without jitter, adaptive factor, Retry-After or the attempts' own time; ms. */
export function nominalMs(policy: Policy): number {
  return timeBudget(policy).nominalMs
}

/** The longest from the beginning of the first attempt to the end of the last, ms: most jitter, slowest factor, every attempt up to its timeout. */
export function worstCaseMs(policy: Policy): number {
  return timeBudget(policy).worstMs
}
