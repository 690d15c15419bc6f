/**
 * Share of deliveries that arrive where each attempt succeeds with `availability`, independently of the others: 1 - (1 - a)^n.
 * Outages break that independence, which is what a schedule over days is for: the shortest waits fail together.
 */
export function deliveredShare(availability: number, attempts: number): number {
  return 1 - (1 - availability) ** attempts
}
