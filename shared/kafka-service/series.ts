import type { BrokerTime } from '../kafka/broker-time.ts'
import type { Consumer } from '../kafka/consumer.ts'
import type { PartitionState } from '../kafka/partition-window.ts'
import type { Producer } from '../kafka/producer.ts'
import type { Metrics } from '../metrics/registry.ts'

/** A position that stands below the high watermark for this long although nothing holds it, ms. */
export const stalledAfterMs = 30_000

type Row = readonly [name: string, help: string, value: () => number]

/** What every service says of its producer and of the brokers' clock. */
export function exportProducerSeries(metrics: Metrics, { producer, brokerTime }: { readonly producer: Producer; readonly brokerTime: BrokerTime }): void {
  exportGauges(metrics, [
    ['posthouse_broker_clock_skew_seconds', 'Broker time minus the clock of this machine.', () => brokerTime.skewMs() / 1000],
    ['posthouse_producer_queued_records', 'Records that wait to be acknowledged by the brokers.', () => producer.queuedRecords()],
    ['posthouse_producer_queued_bytes', 'Bytes of the records that wait to be acknowledged.', () => producer.queuedBytes()],
  ])
  const counters: readonly Row[] = [
    ['posthouse_producer_retried_records_total', 'Records sent again after a failure: each may have been written before.', () => producer.counts().retriedRecords],
    ['posthouse_producer_refused_records_total', 'Refusals of records by the brokers or by a limit of ours, each try counted.', () => producer.counts().refusedRecords],
  ]
  for (const [name, help, total] of counters) metrics.counter({ name, help, total })
}

/** What a service with one consumer says of it; lag and stalls are of the partitions it owns. */
export function exportConsumerSeries(metrics: Metrics, consumer: () => Consumer | null, windowBytes: number): void {
  const partitions = (): PartitionState[] => consumer()?.partitions() ?? []
  exportGauges(metrics, [
    ['posthouse_consumer_lag_records', 'Records of owned partitions that are not read yet.', () => sum(partitions().map(lagOf))],
    ['posthouse_consumer_owned_partitions', 'Partitions this process owns.', () => partitions().length],
    [
      'posthouse_consumer_stalled_partitions', 'Owned partitions whose position stands below the high watermark although nothing holds it.',
      () => partitions().filter(({ stalledMs }) => stalledMs >= stalledAfterMs).length,
    ],
    ['posthouse_consumer_heartbeat_age_seconds', 'Since the coordinator last took a heartbeat; -1 before the first.', () => ageSeconds(consumer()?.lastHeartbeatAt() ?? null)],
    ['posthouse_window_records', 'Records that were read and are not done.', () => sum(partitions().map(({ unfinishedCount }) => unfinishedCount))],
    ['posthouse_window_bytes', 'Memory of the records that were read and are not done.', () => consumer()?.unfinishedBytes() ?? 0],
    ['posthouse_window_limit_bytes', 'Where reading stops until some are done.', () => windowBytes],
  ])
  metrics.counter({ name: 'posthouse_consumer_joins_total', help: 'Times the group was joined: the start and every rebalance.', total: () => consumer()?.joins() ?? 0 })
}

/** How old each followed table is; an attempt and a match need one younger than a second. */
export function exportTableSeries(metrics: Metrics, tables: Readonly<Record<string, () => { ageMs(): number } | null>>): void {
  metrics.gauge({
    name: 'posthouse_table_age_seconds', help: 'Since when a followed table is known to be whole; -1 before it was.', labels: { table: Object.keys(tables) },
    collect: (gauge) => {
      for (const [table, get] of Object.entries(tables)) {
        const ageMs = get()?.ageMs() ?? Infinity
        gauge.set({ table }, Number.isFinite(ageMs) ? ageMs / 1000 : -1)
      }
    },
  })
}

export function exportGauges(metrics: Metrics, rows: readonly Row[]): void {
  for (const [name, help, value] of rows) metrics.gauge({ name, help, collect: (gauge) => gauge.set(value()) })
}

const lagOf = ({ position, highWatermark }: PartitionState): number => Math.max(0, (highWatermark ?? 0) - (position ?? highWatermark ?? 0))
const ageSeconds = (at: number | null): number => (at === null ? -1 : (Date.now() - at) / 1000)
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
