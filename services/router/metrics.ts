import { waitingSecondsBuckets } from '../../shared/metrics/buckets.ts'
import type { Metrics } from '../../shared/metrics/registry.ts'
import { rejectReasons, type RejectReason } from '../../shared/records/event-value.ts'

/** `internal`: a fault of ours that this record brings out. */
export type RefusalReason = RejectReason | 'internal'

/** What routing reports. */
export type RouterMetrics = {
  /** An event of which every delivery is acknowledged; `ageMs` since its record was written. */
  routed(ageMs: number): void
  unmatched(): void
  skipped(): void
  rejected(reason: RefusalReason): void
  /** An event was matched: how many want it, and how many disabled ones would. */
  matched(routedCount: number, disabledCount: number): void
  created(deliveries: number): void
  faulted(): void
}

const refusalReasons: readonly RefusalReason[] = [...rejectReasons, 'internal']
const fanOutBuckets = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000]

/** The counters of this service, each present at 0. */
export function createRouterMetrics(metrics: Metrics): RouterMetrics {
  const events = metrics.counter({
    name: 'posthouse_events_total', help: 'Records of the events topics that are done, by what became of them.',
    labels: { result: ['routed', 'unmatched', 'rejected', 'skipped'] },
  })
  const rejected = metrics.counter({ name: 'posthouse_events_rejected_total', help: 'Records written to the rejected topic, by what was wrong with them.', labels: { reason: refusalReasons } })
  const created = metrics.counter({ name: 'posthouse_deliveries_created_total', help: 'Deliveries written and acknowledged.' })
  const disabled = metrics.counter({ name: 'posthouse_disabled_skipped_total', help: 'Deliveries not made because the matching subscription is disabled.' })
  const fanOut = metrics.histogram({ name: 'posthouse_event_fan_out_records', help: 'Deliveries of an event; 0 where nobody wants it.', buckets: fanOutBuckets })
  const seconds = metrics.histogram({
    name: 'posthouse_routing_duration_seconds', help: 'From the record of an event to the acknowledgement of its last delivery, in broker time.',
    buckets: waitingSecondsBuckets([10_000, 60_000, 300_000], 3_600_000),
  })
  const faults = metrics.counter({ name: 'posthouse_faults_total', help: 'Faults of our own while a record was in hand.' })
  return {
    routed(ageMs) {
      events.inc({ result: 'routed' })
      seconds.observe(Math.max(0, ageMs) / 1000)
    },
    unmatched: () => events.inc({ result: 'unmatched' }),
    skipped: () => events.inc({ result: 'skipped' }),
    rejected(reason) {
      events.inc({ result: 'rejected' })
      rejected.inc({ reason })
    },
    matched(routedCount, disabledCount) {
      fanOut.observe(routedCount)
      disabled.inc(disabledCount)
    },
    created: (deliveries) => created.inc(deliveries),
    faulted: () => faults.inc(),
  }
}
