import type { Origin, RecordHeader } from './delivery.ts'

/** One accepted event, as the router passes it on. */
export type Event = {
  readonly id: string
  readonly type: string
  readonly tenant: string | null
  /** `ce_source` where the producer gave one, else the input topic: part of the delivery id. */
  readonly source: string
  /** JSON text, the request body of every attempt. */
  readonly body: Buffer
  readonly origin: Origin
  readonly sourceKey: Buffer | null
  readonly sourceHeaders: readonly RecordHeader[]
}
