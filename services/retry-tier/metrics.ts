import type { Trimmed } from '../../shared/kafka/trim.ts'
import { stalledAfterMs } from '../../shared/kafka-service/series.ts'
import { latenessSecondsBuckets } from '../../shared/metrics/buckets.ts'
import type { Metrics } from '../../shared/metrics/registry.ts'
import { rejectReasons, type OnwardEvents } from './onward.ts'
import type { ServedTier } from './served-tier.ts'

export type RetryTierMetrics = OnwardEvents & {
  /** Makes the series of a tier present at 0, before anything happens in it. `targets`: where its records may go. */
  onServed(suffix: string, targets: readonly string[]): void
  onJoined(suffix: string): void
  onTrimmed(suffix: string, trimmed: readonly Trimmed[]): void
}

/** The series of this service. `tier`, `from` and `to` are ends of the names of retry topics, or `deliveries` and `rejected`. */
export function createRetryTierMetrics(metrics: Metrics, tiers: () => readonly ServedTier[]): RetryTierMetrics {
  const tier: readonly string[] = []
  const hops = metrics.counter({ name: 'posthouse_retry_hops_total', help: 'Records written onward, by where they waited and where they went.', labels: { from: tier, to: tier } })
  const rejected = metrics.counter({ name: 'posthouse_retry_rejected_total', help: 'Records of retry topics that were no deliveries.', labels: { tier, reason: tier } })
  const trimmed = metrics.counter({ name: 'posthouse_retry_trimmed_records_total', help: 'Records deleted behind the committed offset.', labels: { tier } })
  const joins = metrics.counter({ name: 'posthouse_retry_joins_total', help: 'Times the group of a tier was joined: the start and every rebalance.', labels: { tier } })
  const lateness = metrics.histogram({
    name: 'posthouse_retry_lateness_seconds', help: 'From the end of a stay to the append of what follows it, in broker time.',
    labels: { tier }, buckets: latenessSecondsBuckets,
  })
  const dueLateness = metrics.histogram({
    name: 'posthouse_retry_due_lateness_seconds', help: 'From the due time to the append to deliveries, in broker time; the last tier\'s allowance is in it.',
    buckets: latenessSecondsBuckets,
  })
  exportTiers(metrics, tiers)

  return {
    onServed(suffix, targets) {
      for (const to of targets) hops.inc({ from: suffix, to }, 0)
      for (const reason of rejectReasons) rejected.inc({ tier: suffix, reason }, 0)
      trimmed.inc({ tier: suffix }, 0)
      joins.inc({ tier: suffix }, 0)
      lateness.zero({ tier: suffix })
    },
    onJoined: (suffix) => joins.inc({ tier: suffix }),
    onHop({ from, to, latenessMs, dueLatenessMs }) {
      hops.inc({ from, to })
      if (latenessMs !== null) lateness.observe({ tier: from }, latenessMs / 1000)
      if (dueLatenessMs !== null) dueLateness.observe(dueLatenessMs / 1000)
    },
    onRejected: (suffix, reason) => rejected.inc({ tier: suffix, reason }),
    onTrimmed: (suffix, partitions) => trimmed.inc({ tier: suffix }, sum(partitions.map(({ records }) => records))),
  }
}

/** One gauge a row: name, help, value of a tier. */
const tierGauges: readonly (readonly [string, string, (tier: ServedTier) => number])[] = [
  ['posthouse_retry_depth_records', 'Records of owned partitions not yet written onward: unread, waiting and in flight.', depthOf],
  ['posthouse_retry_lag_records', 'Records of owned partitions not yet read.', lagOf],
  ['posthouse_retry_overdue_seconds', 'How long the record that came up first has been ready without being written onward.', (tier) => tier.overdueMs() / 1000],
  ['posthouse_retry_in_hand_records', 'Records in memory whose stay is not over.', (tier) => tier.waitingCount()],
  ['posthouse_retry_in_flight_records', 'Records sent onward and not acknowledged.', (tier) => tier.inFlightCount()],
  ['posthouse_retry_in_hand_bytes', 'Memory of the records in hand and in flight.', (tier) => tier.consumer.unfinishedBytes()],
  ['posthouse_retry_owned_partitions', 'Partitions of the tier this process owns.', (tier) => tier.consumer.partitions().length],
  ['posthouse_retry_stalled_partitions', 'Partitions whose position stands below the high watermark although nothing holds it.', stalledOf],
  ['posthouse_retry_heartbeat_age_seconds', 'Since the coordinator last took a heartbeat; -1 before the first.', heartbeatAgeOf],
]

function exportTiers(metrics: Metrics, tiers: () => readonly ServedTier[]): void {
  for (const [name, help, valueOf] of tierGauges) {
    metrics.gauge({
      name, help, labels: { tier: [] },
      collect: (gauge) => {
        // A tier that is gone must not keep its last value.
        gauge.reset()
        for (const tier of tiers()) gauge.set({ tier: tier.suffix }, valueOf(tier))
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
