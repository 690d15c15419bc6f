import type { Delivery } from '../../shared/domain/delivery.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'

/** One delivery in hand, from its record to the acknowledgement of all it caused. */
export type Job = {
  readonly lease: Lease
  readonly delivery: Delivery
  /** Identity of this try, see window-duplicates.ts. */
  readonly windowKey: string
  readonly settledKey: Buffer
  /** Times it was parked for holding too much of the window; travels in a header. */
  readonly timesParked: number
  /** performance.now() ms: a table as fresh as this has what was written before the record was read. */
  readonly readAt: number
  /** Our own trouble with this record, in this process. */
  localFailures: number
  internalFailures: number
}
