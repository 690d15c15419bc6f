import { isDelivered, type FailureClass } from '../../shared/domain/classify.ts'
import type { Decision } from '../../shared/domain/decide.ts'
import { deadLetterReasons } from '../../shared/domain/delivery.ts'
import { healthBands } from '../../shared/domain/health.ts'
import { nextHop, tierTopicSuffix } from '../../shared/domain/hops.ts'
import type { Outcome } from '../../shared/domain/outcome.ts'
import { exportGauges } from '../../shared/kafka-service/series.ts'
import { attemptSecondsBuckets, latenessSecondsBuckets, waitingSecondsBuckets } from '../../shared/metrics/buckets.ts'
import type { Metrics } from '../../shared/metrics/registry.ts'
import type { Endpoints } from './endpoints.ts'
import type { Verdict } from './judge.ts'

export const parkReasons = ['overflow', 'throttled', 'paused', 'unknown'] as const
export type ParkReason = (typeof parkReasons)[number]

/** What the worker reports. */
export type DeliveryMetrics = {
  /** An attempt begins; `waitedMs` since its delivery could be read, in broker time. */
  began(waitedMs: number): void
  attempted(outcome: Outcome, failureClass: 'delivered' | FailureClass, durationMs: number): void
  /** What an attempt led to is acknowledged; `ageMs` since the delivery was routed. */
  concluded(decision: Exclude<Decision, { kind: 'local' }>, ageMs: number): void
  endedUnsent(verdict: Extract<Verdict, { kind: 'dead' | 'cancelled' }>): void
  parked(why: ParkReason): void
  rejected(reason: string): void
  repeated(): void
  faulted(): void
}

const attemptClasses = ['delivered', 'retriable', 'ambiguous', 'permanent', 'local'] as const
const statusClasses = ['none', '1xx', '2xx', '3xx', '4xx', '5xx', 'other'] as const
const cancelReasons = ['deleted', 'tenant_differs', 'gone'] as const
const rejectReasons = ['null_value', 'unreadable'] as const

/** The counters of this service. No endpoint, tenant, event type or id is a label. */
export function createDeliveryMetrics(metrics: Metrics, tiersMs: readonly number[], expiryMs: number): DeliveryMetrics {
  const attempts = metrics.counter({
    name: 'posthouse_attempts_total', help: 'HTTP attempts, by what their outcome meant and by class of status (none: no response).',
    labels: { class: attemptClasses, status_class: statusClasses },
  })
  const attemptSeconds = metrics.histogram({ name: 'posthouse_attempt_duration_seconds', help: 'Time of an HTTP attempt.', buckets: attemptSecondsBuckets })
  const startSeconds = metrics.histogram({
    name: 'posthouse_attempt_start_delay_seconds', help: 'From the append of a delivery to the deliveries topic to the start of its attempt, in broker time.',
    buckets: latenessSecondsBuckets,
  })
  const deliverySeconds = metrics.histogram({
    name: 'posthouse_delivery_duration_seconds', help: 'From routing to the acknowledged success, waits and retries included.',
    buckets: waitingSecondsBuckets(tiersMs, expiryMs),
  })
  const retries = metrics.counter({
    name: 'posthouse_retries_scheduled_total', help: 'Failed attempts that will be tried again, by the first tier they wait in.',
    labels: { tier: ['soon', ...tiersMs.map(tierTopicSuffix)] },
  })
  const deadLetters = metrics.counter({ name: 'posthouse_dead_letters_total', help: 'Deliveries written to the dead-letter topic.', labels: { reason: deadLetterReasons } })
  const cancelled = metrics.counter({ name: 'posthouse_deliveries_cancelled_total', help: 'Deliveries that are no longer wanted.', labels: { reason: cancelReasons } })
  const parked = metrics.counter({ name: 'posthouse_deliveries_parked_total', help: 'Deliveries sent to wait without an attempt.', labels: { reason: parkReasons } })
  const rejected = metrics.counter({ name: 'posthouse_deliveries_rejected_total', help: 'Records of the deliveries topic that cannot be read.', labels: { reason: rejectReasons } })
  const repeats = metrics.counter({ name: 'posthouse_repeats_dropped_total', help: 'Records that repeat a settled or an unfinished delivery and were not sent.' })
  const faults = metrics.counter({ name: 'posthouse_faults_total', help: 'Faults of our own while a delivery was in hand; the third one ends it as a dead letter.' })

  return {
    began: (waitedMs) => startSeconds.observe(Math.max(0, waitedMs) / 1000),
    attempted(outcome, failureClass, durationMs) {
      attempts.inc({ class: failureClass, status_class: statusClassOf(outcome) })
      attemptSeconds.observe(durationMs / 1000)
    },
    concluded(decision, ageMs) {
      if (decision.kind === 'success') deliverySeconds.observe(Math.max(0, ageMs) / 1000)
      else if (decision.kind === 'retry') {
        const hop = nextHop(decision.waitMs, tiersMs)
        retries.inc({ tier: hop.kind === 'tier' ? tierTopicSuffix(hop.delayMs) : 'soon' })
      } else deadLetters.inc({ reason: decision.kind === 'gone' ? 'gone' : decision.reason })
    },
    endedUnsent(verdict) {
      if (verdict.kind === 'cancelled') cancelled.inc({ reason: verdict.reason })
      else deadLetters.inc({ reason: verdict.reason })
    },
    parked: (reason) => parked.inc({ reason }),
    rejected: (reason) => rejected.inc({ reason }),
    repeated: () => repeats.inc(),
    faulted: () => faults.inc(),
  }
}

/** What is read when somebody scrapes. */
export function exportDeliveryGauges(metrics: Metrics, sources: {
  readonly endpoints: Endpoints
  inFlight(): number
  queued(): number
}): void {
  metrics.gauge({
    name: 'posthouse_endpoints', help: 'Endpoints in use in this process, by health band.', labels: { band: healthBands },
    collect: (gauge) => {
      const counts = sources.endpoints.countByBand()
      for (const band of healthBands) gauge.set({ band }, counts[band])
    },
  })
  exportGauges(metrics, [
    ['posthouse_endpoints_throttled', 'Endpoints that asked for quiet.', () => sources.endpoints.throttledCount()],
    ['posthouse_requests_in_flight', 'HTTP attempts under way.', sources.inFlight],
    ['posthouse_deliveries_queued', 'Deliveries in memory that wait for their turn.', sources.queued],
  ])
}

function statusClassOf(outcome: Outcome): (typeof statusClasses)[number] {
  if (outcome.kind === 'failure') return 'none'
  if (isDelivered(outcome.status)) return '2xx'
  const hundreds = Math.floor(outcome.status / 100)
  return statusClasses.find((one) => one === `${hundreds}xx`) ?? 'other'
}
