import { deadState } from '../../shared/domain/decide.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import type { Writer } from '../../shared/kafka/writer.ts'
import type { Log } from '../../shared/log/log.ts'
import { rejectedRecord } from '../../shared/records/rejected.ts'
import type { Endpoints } from './endpoints.ts'
import type { Job } from './job.ts'
import type { Verdict } from './judge.ts'
import type { DeliveryMetrics, ParkReason } from './metrics.ts'
import { cancelledRecord, deadRecords, parkedRecord, type SettleContext, type Tried } from './settle.ts'

/** How deliveries leave without an attempt. Each promise resolves when it is written, or when it no longer may be; the caller counts them as work. */
export type Unsent = {
  /** Carries out a verdict that is final or a wait. */
  carryOut(job: Job, verdict: Exclude<Verdict, { kind: 'attempt' | 'unknown' }>): Promise<void>
  /** Nothing that this version can read was read of its subscription, though a table read since then should have it. */
  parkUnknown(job: Job): Promise<void>
  /** It is beyond its endpoint's share of the window. */
  parkOverflow(job: Job, endpointKey: string, waitMs: number): Promise<void>
  /** Our own fault, again and again on this delivery. */
  giveUp(job: Job): Promise<void>
  reject(lease: Lease, reason: string, detail: string): Promise<void>
}

const pausedParkMs = 30 * 60_000
const unknownParkMs = 5 * 60_000

export function createUnsent(options: {
  readonly settle: SettleContext
  readonly writer: Writer
  readonly brokerTime: BrokerTime
  readonly endpoints: Endpoints
  readonly metrics: DeliveryMetrics
  readonly log: Log
  /** Lets the job's record go. */
  readonly finish: (job: Job) => void
}): Unsent {
  const { settle, writer, endpoints, metrics, log, finish } = options
  const largestTierMs = Math.max(...settle.tiersMs)
  const now = (): number => options.brokerTime.nowForDue()

  async function park(job: Job, key: string, why: ParkReason, waitMs: number): Promise<void> {
    // Looked at in the very turn in which it is written: thousands may leave at once.
    while (!writer.hasRoom()) await writer.room()
    if (!job.lease.isHeld) return
    const timesParked = job.timesParked + (why === 'overflow' ? 1 : 0)
    const record = parkedRecord(settle, job.lease.record, { key, dueAt: now() + waitMs, leftMs: waitMs, timesParked })
    if (!await writer.write([record])) return
    metrics.parked(why)
    finish(job)
  }

  async function end(job: Job, verdict: Extract<Verdict, { kind: 'dead' | 'cancelled' }>): Promise<void> {
    while (!writer.hasRoom()) await writer.room()
    if (!job.lease.isHeld) return
    const subscription = verdict.kind === 'dead' ? verdict.subscription : null
    const tried: Tried = { subscription, endpointKey: keyOf(job, subscription), startedAt: now(), durationMs: 0, outcome: null }
    const records = verdict.kind === 'cancelled'
      ? [cancelledRecord(settle, job.delivery, tried, verdict.reason)]
      : deadRecords(settle, job.delivery, tried, { state: verdict.state, reason: verdict.reason, attempt: null, error: null })
    if (!await writer.write(records)) return
    metrics.endedUnsent(verdict)
    log.info('ended without an attempt', { delivery: job.delivery.id, subscription: job.delivery.subscriptionId, state: verdict.kind, reason: verdict.reason })
    finish(job)
  }

  return {
    carryOut(job, verdict) {
      if (verdict.kind !== 'park') return end(job, verdict)
      const key = verdict.subscription.endpointKey
      return verdict.why === 'paused'
        ? park(job, key, 'paused', Math.min(pausedParkMs, largestTierMs))
        : park(job, key, 'throttled', Math.max(0, endpoints.get(key).throttle.placeInLine(now()) - now()))
    },

    parkUnknown(job) {
      log.warn('a delivery names a subscription that no readable record was found of; it is parked', {
        delivery: job.delivery.id, subscription: job.delivery.subscriptionId,
      })
      return park(job, keyOf(job, null), 'unknown', Math.min(unknownParkMs, largestTierMs))
    },

    parkOverflow: (job, endpointKey, waitMs) => park(job, endpointKey, 'overflow', waitMs),

    giveUp: (job) => end(job, { kind: 'dead', state: deadState('internal'), reason: 'internal', subscription: null }),

    async reject(lease, reason, detail) {
      const { partition, offset } = lease.record
      log.warn('a record of the deliveries topic cannot be read; it goes to the rejected topic', { partition, offset, reason, detail })
      if (!await writer.write([rejectedRecord({ topic: settle.topics.rejected, record: lease.record, reason, detail })])) return
      metrics.rejected(reason)
      lease.done()
    },
  }
}

/** Without a subscription the record's own key still says which endpoint it was for. */
const keyOf = (job: Job, subscription: StoredSubscription | null): string =>
  subscription?.endpointKey ?? job.lease.record.key?.toString() ?? ''
