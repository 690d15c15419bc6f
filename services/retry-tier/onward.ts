import { nextHop, tierTopicSuffix } from '../../shared/domain/hops.ts'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import { ProduceError } from '../../shared/kafka/produce-error.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import type { Acknowledgement, Producer } from '../../shared/kafka/producer.ts'
import type { TopicNames } from '../../shared/kafka/topics.ts'
import type { Log } from '../../shared/log/log.ts'
import { dueHeader, readDueAt } from '../../shared/records/record-headers.ts'
import { rejectedRecord } from '../../shared/records/rejected.ts'
import type { Ready } from './waiting-line.ts'

export type Hopped = {
  readonly from: string
  readonly to: string
  /** From the end of the stay to the append, ms; null where the record did not wait for it or the topic keeps no append time. */
  readonly latenessMs: number | null
  /** From the due time, ms; only into `deliveries`. */
  readonly dueLatenessMs: number | null
}

export type OnwardEvents = {
  /** A record was written onward. `to`: the end of a retry topic's name, `deliveries` or `rejected`. */
  onHop(hop: Hopped): void
  onRejected(from: string, reason: RejectReason): void
}

export type RejectReason = 'null_value' | 'too_large' | 'internal'
export const rejectReasons: readonly RejectReason[] = ['null_value', 'too_large', 'internal']

export type OnwardOptions = {
  readonly producer: Producer
  readonly brokerTime: BrokerTime
  readonly topics: TopicNames
  /** Delays of the tiers that may be used now: configured, and their topics exist. */
  targetDelaysMs(): readonly number[]
  readonly events: OnwardEvents
  readonly log: Log
  /** First pause before a refused record is tried again, ms; doubles up to `mostPauseMs`. */
  readonly leastPauseMs?: number
}

/** Takes records whose stay is over to where they go next: key, value and headers are passed on by their bytes, never decoded. */
export type Onward = {
  /** Epoch ms, at or before the true broker time. */
  now(): number
  /** False until the first acknowledgement: until then this machine's own clock is all there is, and it may be anything. */
  isClockKnown(): boolean
  hasRoom(): boolean
  room(): Promise<void>
  /**
   * True once the record is acknowledged where it belongs; false when its partition was lost or the producer closed.
   * A record that is refused is held and tried again; a rejection is a bug of ours.
   */
  forward(from: string, ready: Ready): Promise<boolean>
  /** The same, to `retry.soon` whatever is left of its wait: it is held there, and its acknowledgement tells the brokers' time. */
  forwardAsProbe(from: string, ready: Ready): Promise<boolean>
  /** When a record in `retry.soon` is to be taken, epoch ms: when due, or at once where a tier fits what is left. */
  soonReadyAt(lease: Lease): number
  /** The latest refusal that still holds a record back, for whoever asks why the service is not ready; null when none does. */
  refusal(): string | null
}

type Target = {
  readonly to: string
  readonly record: ProducedRecord
  /** The end of the stay, and for `deliveries` the due time: what the append is measured against. */
  readonly readyAt: number | null
  readonly dueAt: number | null
}

const mostPauseMs = 5_000
/** A bug of ours that one record brings out must not hold its partition for ever. */
const mostInternalFailures = 3

export function createOnward(options: OnwardOptions): Onward {
  const { producer, brokerTime, topics, events, log, leastPauseMs = 200 } = options
  const refusals = new Map<Ready, string>()

  /** A foreign record without a due time has none but the end of its stay. */
  const dueAtOf = ({ lease, readyAt }: Ready): number => readDueAt(lease.record.headers) ?? readyAt

  function passOn({ lease: { record } }: Ready, topic: string): ProducedRecord {
    return { topic, key: record.key, value: record.value, headers: record.headers }
  }

  function nextTarget(ready: Ready): Target {
    const dueAt = dueAtOf(ready)
    const hop = nextHop(dueAt - brokerTime.nowForWait(), options.targetDelaysMs())
    if (hop.kind === 'now') return { to: 'deliveries', record: passOn(ready, topics.deliveries), readyAt: ready.readyAt, dueAt }
    const suffix = hop.kind === 'soon' ? 'soon' : tierTopicSuffix(hop.delayMs)
    return { to: suffix, record: passOn(ready, topics.retry(suffix)), readyAt: ready.readyAt, dueAt: null }
  }

  function probeTarget(ready: Ready): Target {
    const { headers } = ready.lease.record
    const record = passOn(ready, topics.soon)
    // Without a due time it is about to leave the topic whose delay was all that told it.
    const due = readDueAt(headers) === null ? [{ name: dueHeader, value: String(ready.readyAt) }] : []
    return { to: 'soon', record: { ...record, headers: [...headers, ...due] }, readyAt: null, dueAt: null }
  }

  function rejectTarget(ready: Ready, reason: RejectReason, detail: string): Target {
    const record = rejectedRecord({ topic: topics.rejected, record: ready.lease.record, reason, detail })
    return { to: 'rejected', record, readyAt: null, dueAt: null }
  }

  async function write(from: string, ready: Ready, choose: () => Target): Promise<boolean> {
    let reject: { readonly reason: RejectReason; readonly detail: string } | null =
      ready.lease.record.value === null ? { reason: 'null_value', detail: 'a record without a value is no delivery' } : null
    let internalFailures = 0
    for (let failures = 0; ready.lease.isHeld; failures += 1) {
      const target = reject ? rejectTarget(ready, reject.reason, reject.detail) : choose()
      try {
        const acknowledgement = await producer.send(target.record)
        if (reject) events.onRejected(from, reject.reason)
        events.onHop({ from, to: target.to, ...latenessOf(target, acknowledgement) })
        return true
      } catch (error) {
        if (!(error instanceof ProduceError)) throw error
        if (error.reason === 'closed') return false
        if (error.reason === 'internal') internalFailures += 1
        if (!reject && error.reason === 'too_large') reject = { reason: 'too_large', detail: error.message }
        else if (!reject && internalFailures >= mostInternalFailures) reject = { reason: 'internal', detail: error.message }
        else await holdBack(ready, error, failures)
      }
    }
    return false
  }

  /** The record stays in hand, so its offset is not committed. However many are held, one of them says it once a pause. */
  async function holdBack(ready: Ready, error: ProduceError, failures: number): Promise<void> {
    const { topic, partition, offset } = ready.lease.record
    refusals.set(ready, error.message)
    if (refusals.keys().next().value === ready) {
      log.error('a record could not be written onward: it is held and tried again', { topic, partition, offset, error })
    }
    await new Promise<void>((resolve) => { setTimeout(resolve, Math.min(leastPauseMs * 2 ** failures, mostPauseMs)).unref() })
  }

  async function writeUntilSettled(from: string, ready: Ready, choose: () => Target): Promise<boolean> {
    try {
      return await write(from, ready, choose)
    } finally {
      refusals.delete(ready)
    }
  }

  return {
    now: () => brokerTime.nowForWait(),
    isClockKnown: () => brokerTime.uncertaintyMs() !== null,
    hasRoom: () => producer.hasRoom(),
    room: () => producer.room(),
    forward: (from, ready) => writeUntilSettled(from, ready, () => nextTarget(ready)),
    forwardAsProbe: (from, ready) => writeUntilSettled(from, ready, () => probeTarget(ready)),
    soonReadyAt({ record }) {
      const dueAt = readDueAt(record.headers) ?? record.timestamp
      const hop = nextHop(dueAt - brokerTime.nowForWait(), options.targetDelaysMs())
      return hop.kind === 'tier' ? record.timestamp : dueAt
    },
    refusal: () => refusals.values().next().value ?? null,
  }
}

/** By the brokers' own stamp, so that nothing of this machine's clock is in it. */
function latenessOf({ readyAt, dueAt }: Target, { appendedAt }: Acknowledgement): Pick<Hopped, 'latenessMs' | 'dueLatenessMs'> {
  const since = (at: number | null): number | null => (at === null || appendedAt === null ? null : appendedAt - at)
  return { latenessMs: since(readyAt), dueLatenessMs: since(dueAt) }
}
