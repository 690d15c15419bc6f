import type { FairQueue } from '../../shared/domain/fair-queue.ts'
import { countToPark, parkDelayMs } from '../../shared/domain/parking.ts'
import type { Endpoints } from './endpoints.ts'
import type { Job } from './job.ts'

export type Overflow = {
  /** Looks at an endpoint that was given one more. */
  check(endpointKey: string): void
  /** Looks again at those that held too much: one that hangs takes in nothing more once it fills the window. */
  checkLarge(): void
}

/** Below this share of the window nobody is in anybody's way, and a burst for one quick endpoint is better sent than parked. */
const crowdedShare = 0.5

/** Once the window is crowded, an endpoint that holds more than its share and will not be through soon gives up its youngest. */
export function createOverflow(options: {
  readonly queue: FairQueue<Job>
  readonly endpoints: Endpoints
  readonly windowBytes: number
  readonly parkDelaysMs: readonly number[]
  readonly now: () => number
  readonly park: (job: Job, endpointKey: string, waitMs: number) => void
}): Overflow {
  const { queue, endpoints, windowBytes } = options
  const large = new Set<string>()

  function check(key: string): void {
    const heldBytes = queue.bytesOf(key)
    if (heldBytes <= windowBytes / 8) {
      large.delete(key)
      return
    }
    large.add(key)
    if (queue.bytes < windowBytes * crowdedShare) return
    const recentRatePerSecond = endpoints.get(key).rate.ratePerSecond(options.now())
    const count = countToPark({ heldCount: queue.countOf(key), heldBytes, windowBytes, recentRatePerSecond })
    if (count === 0) return
    for (const { item } of queue.takeYoungest(key, count)) options.park(item, key, parkDelayMs(item.timesParked + 1, options.parkDelaysMs))
  }

  return { check, checkLarge: () => { for (const key of large) check(key) } }
}
