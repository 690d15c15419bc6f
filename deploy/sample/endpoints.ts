/** The four endpoints of the sample receiver: what they answer, and when. */
export const endpointNames = ['healthy', 'flaky', 'slow', 'dead'] as const
export type EndpointName = (typeof endpointNames)[number]

export type Behaviour = {
  /** In a few words, for people. */
  readonly does: string
  /** Status for the `n`-th request of one delivery, from 1. */
  status(n: number): number
  /** Before it answers, ms. */
  readonly delayMs: number
}

/** What a good endpoint needs, with its network; one that answered at once would mostly measure how busy this machine is with the others. */
const healthyMs = 100
/**
 * Long enough to look slow beside the others, short enough that a few thousand events pass within minutes once the cap of this
 * endpoint has grown: with a cap of c it takes c / 2 requests a second.
 */
const slowMs = 2_000
const timesFlaky = 2

export const behaviours: Readonly<Record<EndpointName, Behaviour>> = {
  healthy: { does: `answers 200 after ${healthyMs / 1_000} s`, status: () => 200, delayMs: healthyMs },
  flaky: { does: `answers 503 ${timesFlaky} times for each delivery, then 200`, status: (n) => (n <= timesFlaky ? 503 : 200), delayMs: 0 },
  slow: { does: `answers 200 after ${slowMs / 1_000} s`, status: () => 200, delayMs: slowMs },
  dead: { does: 'always answers 500', status: () => 500, delayMs: 0 },
}
