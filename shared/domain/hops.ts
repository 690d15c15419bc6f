import { formatDuration, parseDurationMs } from './duration.ts'

/** A stay may end late by 1 % of its tier, and by no more than this. Never early. */
const maxAllowanceMs = 60_000
const allowanceShare = 0.01

/**
 * Where a delivery that still has to wait goes next. `tier`: to the topic whose records wait `delayMs`. `soon`: what is
 * left is less than the smallest tier and is spent in memory. `now`: it is due.
 */
export type Hop = { readonly kind: 'tier'; readonly delayMs: number } | { readonly kind: 'soon' } | { readonly kind: 'now' }

/** The last part of a tier topic's name: `10s`, `1m`, `48h`. */
export function tierTopicSuffix(delayMs: number): string {
  return formatDuration(delayMs)
}

/** The delay a tier topic's name stands for, ms, or null where it names no tier (such as `soon`). */
export function parseTierSuffix(text: string): number | null {
  try {
    const delayMs = parseDurationMs(text)
    return delayMs > 0 ? delayMs : null
  } catch {
    // Not a duration: some other topic under the same prefix.
    return null
  }
}

/**
 * How late a stay in a tier may end, ms. Without it a wait of just under a tier (the wait less the time the record took to
 * get there) would be cut into many smaller hops.
 */
export function tierAllowanceMs(delayMs: number): number {
  return Math.min(delayMs * allowanceShare, maxAllowanceMs)
}

/**
 * The next hop for what is left of a wait, ms: the largest tier that is no longer than what is left and its allowance.
 * Depends on nothing else, so a hop that is repeated after a crash, or taken with other tiers after a change of
 * configuration, still ends at the due time. `tiers` in any order.
 */
export function nextHop(leftMs: number, tiers: readonly number[]): Hop {
  if (leftMs <= 0) return { kind: 'now' }
  const fitting = tiers.filter((tier) => tier <= leftMs + tierAllowanceMs(tier))
  return fitting.length === 0 ? { kind: 'soon' } : { kind: 'tier', delayMs: Math.max(...fitting) }
}
