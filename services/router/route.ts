import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Event } from '../../shared/domain/event.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import type { TopicNames } from '../../shared/kafka/topics.ts'
import type { Writer } from '../../shared/kafka/writer.ts'
import type { Log } from '../../shared/log/log.ts'
import { readEvent, type DoorOptions } from '../../shared/records/event-door.ts'
import { rejectedRecord } from '../../shared/records/rejected.ts'
import type { SubscriptionTable } from '../../shared/subscriptions/table.ts'
import { chunkSizeOf, deliveryRecord } from './fan-out.ts'
import { createLine } from './line.ts'
import type { RefusalReason, RouterMetrics } from './metrics.ts'

export type RoutingOptions = {
  readonly topics: Pick<TopicNames, 'deliveries' | 'rejected'>
  readonly door: DoorOptions
  readonly subscriptions: Pick<SubscriptionTable, 'match' | 'freshAsOf' | 'waitFresh' | 'newerCount'>
  readonly writer: Writer
  readonly brokerTime: BrokerTime
  readonly metrics: RouterMetrics
  readonly log: Log
}

export type Routing = {
  take(lease: Lease): void
  /** Begins no event and resolves when all that was begun is acknowledged, or after `deadlineMs`: true if all of it is. From then on makes nothing. */
  drain(deadlineMs: number): Promise<boolean>
  /** Routing goes on. */
  resume(): void
  /** Partitions were taken away. */
  dropLost(): void
  /** Events begun and not acknowledged, and records on their way to the rejected topic. */
  inFlight(): number
  /** Records that cannot be read for now, and will be later. */
  waiting(): number
}

/** An event is matched only if the subscriptions table is fresh as of less than this ago. */
export const maxTableAgeMs = 1_000
/** Others get their turn of the event loop after so much work in a row. */
const turnMs = 10
const waitPauseMs = 1_000
/** However many records are refused, it is said this often. */
const sayAgainMs = 10_000

/**
 * The life of one record of an events topic, until it is let go:
 *
 *   take -> line -> read at the door -> match -> deliveries made, as there is room -> all of them acknowledged -> done
 *                         \-> null value, or nobody wants it: done        \-> partition lost: abandoned, the new owner does it all again
 *                          -> refused: written to `rejected` -> done
 *
 * Events are matched one after the other, in the order they were read, and end in any order.
 */
export function createRouting(options: RoutingOptions): Routing {
  const { topics, subscriptions, writer, brokerTime, metrics, log } = options
  const line = createLine()
  const waiting = new Set<Lease>()
  let busy = 0
  let idleWaiters: (() => void)[] = []
  /** `finishing`: what was begun goes on. `halted`: it waits. */
  let phase: 'routing' | 'finishing' | 'halted' = 'routing'
  let resumeWaiters: (() => void)[] = []
  let isRunning = false
  let turnEndsAt = 0
  let refusedSinceSaid = 0
  let refusedSaidAt = -Infinity

  const now = (): number => Math.round(brokerTime.nowForDue())
  /** A record of a newer posthouse may be a subscription that wants the next event: not to know is not to decide. */
  const mayMatch = (): boolean =>
    performance.now() - subscriptions.freshAsOf() < maxTableAgeMs && subscriptions.newerCount() === 0

  async function routeLine(): Promise<void> {
    if (isRunning) return
    isRunning = true
    while (phase === 'routing' && line.size > 0) {
      if (!writer.hasRoom()) await writer.room()
      else if (!mayMatch()) await tableMoved()
      else {
        // Matched in the same turn as the table was found fresh.
        const lease = line.take()
        if (lease?.isHeld) await begin(lease)
      }
      await breathe()
    }
    isRunning = false
  }

  async function tableMoved(): Promise<void> {
    try {
      await subscriptions.waitFresh(performance.now())
    } catch (error) {
      log.debug('the subscriptions table was closed: no more is routed', { error })
      phase = 'halted'
    }
  }

  async function breathe(): Promise<void> {
    if (performance.now() < turnEndsAt) return
    await nextTurn()
    turnEndsAt = performance.now() + turnMs
  }

  async function begin(lease: Lease): Promise<void> {
    try {
      await counted(() => read(lease))
    } catch (error) {
      metrics.faulted()
      const { topic, partition, offset } = lease.record
      log.error('a fault of ours; the record goes to the rejected topic', { topic, partition, offset, error })
      reject(lease, 'internal', 'a fault of posthouse; its log says more')
    }
  }

  async function read(lease: Lease): Promise<void> {
    const seen = readEvent(lease.record, options.door)
    if (seen.kind === 'event') return route(lease, seen.event)
    if (seen.kind === 'rejected') reject(lease, seen.reason, seen.detail)
    else if (seen.kind === 'wait') wait(lease, seen.reason)
    else {
      metrics.skipped()
      lease.done()
    }
  }

  async function route(lease: Lease, event: Event): Promise<void> {
    const { routed, disabledCount } = subscriptions.match(event.tenant, event.type)
    metrics.matched(routed.length, disabledCount)
    if (routed.length > 0) return fanOut(lease, event, routed)
    metrics.unmatched()
    lease.done()
  }

  /** Makes the deliveries of an event a few at a time, as there is room; however many there are, no more of them are in memory. */
  async function fanOut(lease: Lease, event: Event, wanting: readonly StoredSubscription[]): Promise<void> {
    let left = wanting.length
    const write = async (records: readonly ProducedRecord[]): Promise<void> => {
      if (!await writer.write(records)) return
      metrics.created(records.length)
      left -= records.length
      if (left > 0) return
      metrics.routed(brokerTime.nowForWait() - event.origin.timestamp)
      lease.done()
    }

    const chunkSize = chunkSizeOf(event)
    let routedAt = now()
    for (let at = 0; at < wanting.length;) {
      await mayMake()
      if (!lease.isHeld) return
      // Until the first acknowledgement this machine's clock is all there is, and it may be anything: one record finds out.
      const isClockKnown = brokerTime.uncertaintyMs() !== null
      const chunk = wanting.slice(at, isClockKnown ? at + chunkSize : at + 1)
      const records = chunk.map((subscription) => deliveryRecord(topics.deliveries, event, subscription, routedAt))
      const writing = inBackground(() => write(records))
      at += chunk.length
      if (isClockKnown) await breathe()
      else {
        await writing
        routedAt = now()
      }
    }
  }

  async function mayMake(): Promise<void> {
    while (phase === 'halted' || !writer.hasRoom()) {
      if (phase === 'halted') await new Promise<void>((resolve) => { resumeWaiters.push(resolve) })
      else await writer.room()
    }
  }

  function reject(lease: Lease, reason: RefusalReason, detail: string): void {
    sayRefused(lease, reason, detail)
    void inBackground(async () => {
      if (!await writer.write([rejectedRecord({ topic: topics.rejected, record: lease.record, reason, detail })])) return
      metrics.rejected(reason)
      lease.done()
    })
  }

  function sayRefused({ record: { topic, partition, offset } }: Lease, reason: RefusalReason, detail: string): void {
    refusedSinceSaid += 1
    if (performance.now() - refusedSaidAt < sayAgainMs) return
    log.warn('a record is no event; it goes to the rejected topic', { topic, partition, offset, reason, detail, records: refusedSinceSaid })
    refusedSaidAt = performance.now()
    refusedSinceSaid = 0
  }

  function wait(lease: Lease, reason: string): void {
    const { topic, partition, offset } = lease.record
    if (waiting.size === 0) log.warn('a record cannot be read for now; it is kept and tried again', { topic, partition, offset, reason })
    waiting.add(lease)
    setTimeout(() => {
      waiting.delete(lease)
      take(lease)
    }, waitPauseMs).unref()
  }

  function take(lease: Lease): void {
    line.push(lease)
    void routeLine()
  }

  /** Counts work that a drain must wait for. */
  async function counted(task: () => Promise<void>): Promise<void> {
    busy += 1
    try {
      await task()
    } finally {
      busy -= 1
      if (busy === 0) for (const wake of idleWaiters.splice(0)) wake()
    }
  }

  /** What fails in here is a fault of ours: the record stays unfinished, and is read again after a restart. */
  async function inBackground(task: () => Promise<void>): Promise<void> {
    try {
      await counted(task)
    } catch (error) {
      metrics.faulted()
      log.error('a fault of ours; the record stays unfinished', { error })
    }
  }

  return {
    take,
    async drain(deadlineMs) {
      phase = 'finishing'
      if (busy > 0) {
        let timer: NodeJS.Timeout | undefined
        await Promise.race([
          new Promise<void>((resolve) => { idleWaiters.push(resolve) }),
          new Promise<void>((resolve) => { timer = setTimeout(resolve, deadlineMs) }),
        ])
        clearTimeout(timer)
      }
      phase = 'halted'
      return busy === 0
    },
    resume() {
      phase = 'routing'
      for (const wake of resumeWaiters.splice(0)) wake()
      void routeLine()
    },
    dropLost: () => line.dropLost(),
    inFlight: () => busy,
    waiting: () => waiting.size,
  }
}
