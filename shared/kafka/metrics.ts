import { Counter, type Registry } from 'prom-client'
import type { BrokerTime } from './broker-time.ts'
import type { Consumer } from './consumer.ts'
import type { Producer } from './producer.ts'
import type { Table } from './table.ts'

/** What makes series; `createMetrics` of shared/metrics does. */
export type SeriesMaker = {
  readonly registry: Registry
  gauge(described: { readonly name: string; readonly help: string; readonly collect: (gauge: { set(value: number): void }) => void }): unknown
}

type Row = readonly [name: string, help: string, value: () => number]

/** A position that stands below the high watermark for this long although nothing holds it counts as stalled, ms. */
export const stalledAfterMs = 30_000

/** The one consumer group of a service, of its own partitions only; all 0 (age: -1) while there is no consumer yet. */
export function exportConsumer(maker: SeriesMaker, consumer: () => Consumer | null, windowBytes: number): void {
  const partitions = () => consumer()?.partitions() ?? []
  gauges(maker, [
    ['posthouse_consumer_lag_records', 'Records of owned partitions not yet read.', () => sum(partitions().map(lagOf))],
    ['posthouse_consumer_unfinished_records', 'Records read whose work is not yet done.', () => sum(partitions().map((one) => one.unfinishedCount))],
    ['posthouse_consumer_unfinished_bytes', 'Memory of the records read whose work is not yet done.', () => consumer()?.unfinishedBytes() ?? 0],
    ['posthouse_consumer_window_bytes', 'Bytes of unfinished records at which reading stops.', () => windowBytes],
    ['posthouse_consumer_owned_partitions', 'Partitions this process owns.', () => partitions().length],
    ['posthouse_consumer_stalled_partitions', 'Partitions whose position stands below the high watermark although nothing holds it.',
      () => partitions().filter(({ stalledMs }) => stalledMs >= stalledAfterMs).length],
    ['posthouse_consumer_heartbeat_age_seconds', 'Since the coordinator last took a heartbeat; -1 before the first.', () => heartbeatAgeOf(consumer())],
  ])
  counters(maker, [
    ['posthouse_consumer_joins_total', 'Times the group was joined: the start and every rebalance.', () => consumer()?.joins() ?? 0],
  ])
}

/** The producer and the brokers' clock. */
export function exportProducer(maker: SeriesMaker, { producer, brokerTime }: { readonly producer: Producer; readonly brokerTime: BrokerTime }): void {
  gauges(maker, [
    ['posthouse_broker_clock_skew_seconds', 'Broker time minus the clock of this machine.', () => brokerTime.skewMs() / 1000],
    ['posthouse_producer_queued_records', 'Records that wait to be acknowledged by the brokers.', () => producer.queuedRecords()],
    ['posthouse_producer_queued_bytes', 'Bytes of the records that wait to be acknowledged.', () => producer.queuedBytes()],
  ])
  counters(maker, [
    ['posthouse_producer_retried_records_total', 'Records sent again after a failure: each may have been written before.', () => producer.counts().retriedRecords],
    ['posthouse_producer_refused_records_total', 'Records the brokers will not take.', () => producer.counts().refusedRecords],
  ])
}

/** A followed table. `name` goes into the names: `subscriptions`. */
export function exportTable(maker: SeriesMaker, name: string, table: () => Pick<Table, 'ageMs'> | null): void {
  gauges(maker, [
    [`posthouse_${name}_table_age_seconds`, `How old the view of ${name} is; +Inf before it has been read to its end.`, () => (table()?.ageMs() ?? Infinity) / 1000],
  ])
}

function gauges(maker: SeriesMaker, rows: readonly Row[]): void {
  for (const [name, help, value] of rows) maker.gauge({ name, help, collect: (gauge) => gauge.set(value()) })
}

/** What is counted elsewhere is read when scraped, which a registry's own counters cannot. */
function counters({ registry }: SeriesMaker, rows: readonly Row[]): void {
  for (const [name, help, value] of rows) {
    const counter = new Counter({
      name, help, registers: [registry],
      collect: () => {
        counter.reset()
        counter.inc(value())
      },
    })
  }
}

function lagOf({ position, highWatermark }: { readonly position: number | null; readonly highWatermark: number | null }): number {
  return position === null || highWatermark === null ? 0 : Math.max(0, highWatermark - position)
}

function heartbeatAgeOf(consumer: Consumer | null): number {
  const at = consumer?.lastHeartbeatAt() ?? null
  return at === null ? -1 : (Date.now() - at) / 1000
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
