import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until the next of many may begin. */
export type Pace = { next(): Promise<void> }

/** Node's timers are exact to a ms or two: what is less apart goes together. */
const leastSleepMs = 5

/**
 * At most so many a second, evenly, and never more to make up for time that was lost. Ends early when `signal` is aborted; whoever
 * waits looks at it himself. null: as fast as it goes.
 */
export function createPace(perSecond: number | null, signal: AbortSignal): Pace {
  if (perSecond === null) return { next: async () => undefined }
  let nextAt = performance.now()
  return {
    async next() {
      const now = performance.now()
      nextAt = Math.max(nextAt, now - leastSleepMs) + 1000 / perSecond
      const waitMs = nextAt - 1000 / perSecond - now
      // The one error of a sleep is that it was aborted.
      if (waitMs >= leastSleepMs) await sleep(waitMs, undefined, { signal }).catch(() => undefined)
    },
  }
}
