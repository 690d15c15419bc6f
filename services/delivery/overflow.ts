import type { FairQueue } from '../../shared/domain/fair-queue.ts'
import { countToPark, parkDelayMs } from '../../shared/domain/parking.ts'
import type { Endpoints } from './endpoints.ts'
import type { Job } from './job.ts'

export type Overflow = {
  /** Looks at an endpoint that was given one more. */
  check(endpointKey: string): void
  /** Looks at all of them: one that hangs is given nothing more once it fills the window. */
  checkAll(): void
}

/** Below this share of the window nobody is in anybody's way, and a burst for one quick endpoint is better sent than parked. */
const crowdedShare = 0.5

/** Once the window is crowded, endpoints that hold more than their share and will not be through soon give up their youngest. */
export function createOverflow(options: {
  readonly queue: FairQueue<Job>
  readonly endpoints: Endpoints
  readonly windowBytes: number
  readonly parkDelaysMs: readonly number[]
  readonly now: () => number
  readonly park: (job: Job, endpointKey: string, waitMs: number) => void
}): Overflow {
  const { queue, endpoints, windowBytes } = options
  const isCrowded = (): boolean => queue.bytes >= windowBytes * crowdedShare

  function check(key: string): void {
    const heldCount = queue.countOf(key)
    if (heldCount === 0 || !isCrowded()) return
    const count = countToPark({
      heldCount, heldBytes: queue.bytesOf(key), windowBytes, endpointCount: queue.endpointCount,
      recentRatePerSecond: endpoints.get(key).rate.ratePerSecond(options.now()),
    })
    if (count === 0) return
    for (const { item } of queue.takeYoungest(key, count)) options.park(item, key, parkDelayMs(item.timesParked + 1, options.parkDelaysMs))
  }

  return { check, checkAll: () => { if (isCrowded()) for (const key of queue.endpointKeys()) check(key) } }
}
