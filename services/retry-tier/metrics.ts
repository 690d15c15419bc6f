import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { Producer } from '../../shared/kafka/producer.ts'
import type { Trimmed } from '../../shared/kafka/trim.ts'
import { rejectReasons, type OnwardEvents } from './onward.ts'
import type { ServedTier } from './served-tier.ts'

/** What is read when somebody scrapes. */
export type MetricSources = {
  tiers(): readonly ServedTier[]
  readonly producer: Producer
  readonly brokerTime: BrokerTime
}

export type RetryTierMetrics = OnwardEvents & {
  /** Makes the series of a tier present at 0, before anything happens in it. */
  onServed(suffix: string, targets: readonly string[]): void
  onTrimmed(suffix: string, trimmed: readonly Trimmed[]): void
}

/** A position that stands below the high watermark for this long although nothing holds it, ms. */
export const stalledAfterMs = 30_000

const latenessBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800]

/** The series of this service. No endpoint, tenant or id is a label; `tier`, `from` and `to` are ends of topic names, or `deliveries`, `rejected`. */
export function createRetryTierMetrics(registry: Registry, sources: MetricSources): RetryTierMetrics {
  const registers = [registry]
  const hops = new Counter({ name: 'posthouse_retry_hops_total', help: 'Records written onward, by where they waited and where they went', labelNames: ['from', 'to'], registers })
  const rejected = new Counter({ name: 'posthouse_retry_rejected_total', help: 'Records of retry topics written to the topic of the unreadable', labelNames: ['tier', 'reason'], registers })
  const trimmed = new Counter({ name: 'posthouse_retry_trimmed_records_total', help: 'Records deleted behind the committed offset', labelNames: ['tier'], registers })
  const lateness = new Histogram({
    name: 'posthouse_retry_lateness_seconds', help: 'From the end of a stay to the append of the next, in broker time; below 0 would be early',
    labelNames: ['tier'], buckets: latenessBuckets, registers,
  })
  const dueLateness = new Histogram({
    name: 'posthouse_retry_due_lateness_seconds', help: 'From the due time to the append to deliveries, in broker time; includes the allowance of the last tier',
    buckets: latenessBuckets, registers,
  })
  exportTiers(registry, sources)
  exportProcess(registry, sources)

  return {
    onServed(suffix, targets) {
      for (const to of targets) hops.inc({ from: suffix, to }, 0)
      for (const reason of rejectReasons) rejected.inc({ tier: suffix, reason }, 0)
      trimmed.inc({ tier: suffix }, 0)
      lateness.zero({ tier: suffix })
    },
    onHop({ from, to, latenessMs, dueLatenessMs }) {
      hops.inc({ from, to })
      if (latenessMs !== null) lateness.observe({ tier: from }, latenessMs / 1000)
      if (dueLatenessMs !== null) dueLateness.observe(dueLatenessMs / 1000)
    },
    onRejected: (tier, reason) => rejected.inc({ tier, reason }),
    onTrimmed: (tier, partitions) => trimmed.inc({ tier }, partitions.reduce((sum, { records }) => sum + records, 0)),
  }
}

/** One gauge per row: name, help, value of a tier. */
const tierGauges: readonly (readonly [string, string, (tier: ServedTier) => number])[] = [
  ['posthouse_retry_depth_records', 'Records of owned partitions that are not written onward: unread, waiting and in flight', depthOf],
  ['posthouse_retry_lag_records', 'Records of owned partitions that are not read yet', lagOf],
  ['posthouse_retry_overdue_seconds', 'How long the record that came up first has been ready without being written onward', (tier) => tier.overdueMs() / 1000],
  ['posthouse_retry_in_hand_records', 'Records in memory whose stay is not over', (tier) => tier.waitingCount()],
  ['posthouse_retry_in_flight_records', 'Records sent onward and not acknowledged', (tier) => tier.inFlightCount()],
  ['posthouse_retry_in_hand_bytes', 'Memory of records in hand', (tier) => tier.consumer.unfinishedBytes()],
  ['posthouse_retry_partitions', 'Partitions owned', (tier) => tier.consumer.partitions().length],
  ['posthouse_retry_stalled_partitions', 'Partitions whose position stands below the high watermark although nothing holds it', stalledOf],
  ['posthouse_retry_heartbeat_age_seconds', 'Since the coordinator last took a heartbeat; -1 before the first', heartbeatAgeOf],
]

function exportTiers(registry: Registry, { tiers }: MetricSources): void {
  for (const [name, help, valueOf] of tierGauges) {
    // Arrow functions have no `this`, and a tier that is gone must not keep its last value.
    const gauge = new Gauge({
      name, help, labelNames: ['tier'], registers: [registry],
      collect: () => {
        gauge.reset()
        for (const tier of tiers()) gauge.set({ tier: tier.suffix }, valueOf(tier))
      },
    })
  }
  const joins = new Counter({
    name: 'posthouse_retry_joins_total', help: 'Times the group was joined: the first start and every rebalance', labelNames: ['tier'], registers: [registry],
    collect: () => {
      joins.reset()
      for (const tier of tiers()) joins.inc({ tier: tier.suffix }, tier.consumer.joins())
    },
  })
}

function exportProcess(registry: Registry, { brokerTime, producer }: MetricSources): void {
  const registers = [registry]
  const gauges: readonly (readonly [string, string, () => number])[] = [
    ['posthouse_broker_clock_skew_seconds', 'Broker time minus the clock of this machine', () => brokerTime.skewMs() / 1000],
    ['posthouse_producer_queued_records', 'Records that wait to be acknowledged', () => producer.queuedRecords()],
    ['posthouse_producer_queued_bytes', 'Their bytes', () => producer.queuedBytes()],
  ]
  for (const [name, help, value] of gauges) {
    const gauge = new Gauge({ name, help, registers, collect: () => { gauge.set(value()) } })
  }
  const counters: readonly (readonly [string, string, () => number])[] = [
    ['posthouse_producer_retried_records_total', 'Records sent again after a failure: each may have been written before', () => producer.counts().retriedRecords],
    ['posthouse_producer_refused_records_total', 'Records the brokers will not take', () => producer.counts().refusedRecords],
  ]
  for (const [name, help, value] of counters) {
    const counter = new Counter({
      name, help, registers,
      collect: () => {
        counter.reset()
        counter.inc(value())
      },
    })
  }
}

function lagOf({ consumer }: ServedTier): number {
  return sum(consumer.partitions().map(({ position, highWatermark }) => Math.max(0, (highWatermark ?? 0) - (position ?? highWatermark ?? 0))))
}

function depthOf(tier: ServedTier): number {
  return lagOf(tier) + sum(tier.consumer.partitions().map(({ unfinishedCount }) => unfinishedCount))
}

function stalledOf({ consumer }: ServedTier): number {
  return consumer.partitions().filter(({ stalledMs }) => stalledMs >= stalledAfterMs).length
}

function heartbeatAgeOf({ consumer }: ServedTier): number {
  const at = consumer.lastHeartbeatAt()
  return at === null ? -1 : (Date.now() - at) / 1000
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
