import { classify, failureCode } from '../../shared/domain/classify.ts'
import { decide, maxInternalFailures, type Decision } from '../../shared/domain/decide.ts'
import { loadSignOf } from '../../shared/domain/endpoint-cap.ts'
import { createFairQueue } from '../../shared/domain/fair-queue.ts'
import type { Settled } from '../../shared/domain/settled.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import type { TopicPartition } from '../../shared/kafka/assignment.ts'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import type { Writer } from '../../shared/kafka/writer.ts'
import type { Log } from '../../shared/log/log.ts'
import { logAttempt } from './attempt-log.ts'
import type { Endpoint, Endpoints } from './endpoints.ts'
import type { Intake, IntakeDesk } from './intake.ts'
import type { Job } from './job.ts'
import { judge, type SubscriptionLookup, type Verdict } from './judge.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { Requests } from './requests.ts'
import { recordsOf, type SettleContext, type Tried } from './settle.ts'
import { createOverflow } from './overflow.ts'
import { createUnderWay } from './under-way.ts'
import { createUnsent } from './unsent.ts'

export type WorkerOptions = {
  readonly settle: SettleContext
  readonly requests: Requests
  readonly writer: Writer
  readonly brokerTime: BrokerTime
  readonly subscriptions: { get(id: string): SubscriptionLookup; freshAsOf(): number; waitFresh(since: number): Promise<void> }
  readonly endpoints: Endpoints
  readonly desk: IntakeDesk
  readonly settled: Settled
  readonly metrics: DeliveryMetrics
  readonly log: Log
  readonly expiryMs: number
  readonly windowBytes: number
  readonly maxInFlight: number
  readonly parkDelaysMs: readonly number[]
}

export type Worker = {
  take(lease: Lease): void
  /** Starts nothing new and resolves when nothing is in flight or being written, or after `deadlineMs`: true if all of it is through. */
  drain(deadlineMs: number): Promise<boolean>
  /** Starting is allowed again. */
  resume(): void
  abandon(partitions: readonly TopicPartition[]): void
  inFlight(): number
  queued(): number
  /** Partitions with a record of a newer posthouse. */
  newerPartitions(): number[]
  close(): void
}

/** An attempt begins only if the subscriptions table is fresh as of less than this ago. */
export const maxTableAgeMs = 1_000
const overflowCheckMs = 250
const faultPauseMs = 1_000

/**
 * The life of one delivery, from its record to the acknowledgement of everything it caused:
 *
 *   take -> place -> wait in the fair queue -> start -> attempt -> decide -> write -> done
 *              \                              /
 *               `-> parked, dead, cancelled <-   (judged again just before each attempt: the subscription may have changed)
 *
 * A job leaves in one of three ways: done (all it caused is acknowledged), abandoned (its partition was lost; the new owner reads
 * the record again), or kept for ever (nothing can be written; then nothing new starts either).
 */
export function createWorker(options: WorkerOptions): Worker {
  const { settle, writer, brokerTime, requests, subscriptions, endpoints, desk, metrics, log } = options
  const now = (): number => brokerTime.nowForDue()
  const queue = createFairQueue<Job>()
  const underWay = createUnderWay((error) => {
    metrics.faulted()
    log.error('a fault of ours; the record stays unfinished, and is read again after a restart', { error })
  })
  const unsent = createUnsent({ settle, writer, brokerTime, endpoints, metrics, log, finish })
  const overflow = createOverflow({
    queue, endpoints, windowBytes: options.windowBytes, parkDelaysMs: options.parkDelaysMs, now,
    park: (job, key, waitMs) => workOn(job, () => unsent.parkOverflow(job, key, waitMs)),
  })
  const newer = new Set<number>()
  let awaitingTable: Job[] = []
  let inFlight = 0
  let mayStart = true
  let heldUntil = -Infinity
  let isAwaitingTable = false
  let isAwaitingRoom = false

  const isFresh = (): boolean => performance.now() - subscriptions.freshAsOf() < maxTableAgeMs
  const canStart = (key: string): boolean => {
    const endpoint = endpoints.get(key)
    const hasRoom = endpoint.cap.hasRoom()
    if (!hasRoom && !endpoint.isThrottled(now())) endpoint.rate.setBacklog(true, now())
    return hasRoom
  }

  function take(lease: Lease): void {
    underWay.run(async () => sort(lease, desk.take(lease)))
  }

  function sort(lease: Lease, intake: Intake): void {
    if (intake.kind === 'job') place(intake.job)
    else if (intake.kind === 'unreadable') underWay.run(() => unsent.reject(lease, intake.reason, intake.detail))
    else if (intake.kind === 'newer') {
      newer.add(lease.record.partition)
      log.error('a delivery was written by a newer posthouse; it waits until this process is upgraded', { partition: lease.record.partition, detail: intake.detail })
    } else {
      metrics.repeated()
      if (intake.kind === 'repeat') lease.done()
    }
  }

  function place(job: Job): void {
    if (!job.lease.isHeld) return
    if (!isFresh()) return awaitTable(job)
    const verdict = judgeNow(job)
    if (verdict.kind === 'attempt') enqueue(job, verdict.subscription.endpointKey)
    else carryOut(job, verdict)
  }

  function judgeNow({ delivery }: Job): Verdict {
    return judge({ delivery, lookup: subscriptions.get(delivery.subscriptionId), endpointOf: endpoints.get, now: now(), expiryMs: options.expiryMs })
  }

  function awaitTable(job: Job | null): void {
    if (job) awaitingTable.push(job)
    if (isAwaitingTable) return
    isAwaitingTable = true
    subscriptions.waitFresh(performance.now()).then(() => {
      isAwaitingTable = false
      const jobs = awaitingTable
      awaitingTable = []
      for (const one of jobs) place(one)
      pump()
    }, (error: unknown) => log.debug('the subscriptions table was closed', { error }))
  }

  function enqueue(job: Job, key: string): void {
    push(job, key)
    pump()
  }

  function push(job: Job, key: string): void {
    queue.push(key, job, job.delivery.routedAt, job.lease.weight)
    overflow.check(key)
  }

  function pump(): void {
    while (mayStart && inFlight < options.maxInFlight && performance.now() >= heldUntil) {
      if (!isFresh()) return awaitTable(null)
      // Also while a topic refuses: each attempt more would be one whose outcome is lost by a restart.
      if (!writer.hasRoom()) return awaitRoom()
      const next = queue.next(canStart)
      if (!next) return
      start(next.item, next.endpointKey)
    }
  }

  function awaitRoom(): void {
    if (isAwaitingRoom) return
    isAwaitingRoom = true
    void writer.room().then(() => {
      isAwaitingRoom = false
      pump()
    })
  }

  function start(job: Job, key: string): void {
    if (!job.lease.isHeld) return
    const verdict = judgeNow(job)
    if (verdict.kind !== 'attempt') return carryOut(job, verdict)
    const { subscription } = verdict
    // Not pumped: that goes on by itself, and all that waited for the old URL, one within the other, would overflow the stack.
    if (subscription.endpointKey !== key) return push(job, subscription.endpointKey)
    const endpoint = endpoints.get(key)
    const request = endpoint.cap.begin()
    inFlight += 1
    workOn(job, () => attempt(job, subscription, endpoint, request))
  }

  async function attempt(job: Job, subscription: StoredSubscription, endpoint: Endpoint, request: number): Promise<void> {
    const policy = requests.policyOf(subscription)
    const startedAt = Math.round(now())
    metrics.began(brokerTime.nowForWait() - job.lease.record.timestamp)
    const { outcome, durationMs } = await requests.post(job.delivery, subscription, policy)
    inFlight -= 1
    const failureClass = classify(outcome, policy.statusClasses)
    if (failureClass === 'local') endpoint.cap.end(request, 'other')
    else {
      endpoints.finished(endpoint, {
        request, sign: loadSignOf(outcome), isSuccess: failureClass === 'delivered',
        status: outcome.kind === 'response' ? outcome.status : null,
        error: failureClass === 'delivered' ? null : failureCode(outcome),
      })
    }
    const endedAt = Math.ceil(now())
    const decision = decide({
      delivery: job.delivery, outcome, policy, health: endpoint.history.score(endedAt), startedAt, durationMs, endedAt,
      localFailures: job.localFailures, internalFailures: job.internalFailures,
    })
    if ('throttleMs' in decision && decision.throttleMs !== null) {
      endpoints.throttle(endpoint, decision.throttleMs, queue.countOf(endpoint.key) + endpoint.cap.inFlight)
    }
    if (queue.countOf(endpoint.key) === 0) endpoint.rate.setBacklog(false, endedAt)
    queue.unblock(endpoint.key)
    pump()

    const tried: Tried = { subscription, endpointKey: endpoint.key, startedAt, durationMs, outcome }
    metrics.attempted(outcome, failureClass, durationMs)
    logAttempt(log, { job, tried, failureClass, decision, maxAttempts: policy.maxAttempts })
    if (decision.kind === 'local') return holdOff(job, decision)
    await conclude(job, decision, tried, endpoint)
  }

  /** Writes what the outcome causes, then lets the record go. A failure of a lost partition writes nothing: its new owner tries again. */
  async function conclude(job: Job, decision: Exclude<Decision, { kind: 'local' }>, tried: Tried, endpoint: Endpoint): Promise<void> {
    if (!job.lease.isHeld && decision.kind !== 'success') return
    const marked = decision.kind === 'gone' && tried.subscription ? endpoints.markGone(endpoint, tried.subscription.appendedAt) : null
    if (!await writer.write(recordsOf(settle, decision, tried))) return
    await marked
    metrics.concluded(decision, brokerTime.nowForWait() - job.delivery.routedAt)
    options.settled.record(job.settledKey, job.delivery.replay, job.delivery.attemptsMade + 1)
    finish(job)
  }

  /** Our own trouble: not an attempt. Only a fault on this very record lets the others go on. */
  function holdOff(job: Job, { error, waitMs }: Extract<Decision, { kind: 'local' }>): void {
    job.localFailures += 1
    if (error === 'internal') job.internalFailures += 1
    else heldUntil = performance.now() + waitMs
    placeLater(job, waitMs)
  }

  function carryOut(job: Job, verdict: Exclude<Verdict, { kind: 'attempt' }>): void {
    if (verdict.kind !== 'unknown') workOn(job, () => unsent.carryOut(job, verdict))
    // A subscription is written before its events are routed, so a table read since then must have it.
    else if (subscriptions.freshAsOf() < job.readAt) awaitTable(job)
    else workOn(job, () => unsent.parkUnknown(job))
  }

  function finish(job: Job): void {
    for (const lease of [job.lease, ...desk.release(job)]) lease.done()
  }

  /** Work on one delivery. A fault of ours must neither lose it nor hold its partition for ever: after a few it is a dead letter. */
  function workOn(job: Job, task: () => Promise<void>): void {
    underWay.run(async () => {
      try {
        await task()
      } catch (error) {
        metrics.faulted()
        job.internalFailures += 1
        log.error('a fault of ours', { delivery: job.delivery.id, times: job.internalFailures, error })
        if (job.internalFailures >= maxInternalFailures) await unsent.giveUp(job)
        else placeLater(job, faultPauseMs)
      }
    })
  }

  function placeLater(job: Job, waitMs: number): void {
    setTimeout(() => {
      place(job)
      pump()
    }, waitMs).unref()
  }

  const overflowTimer = setInterval(overflow.checkAll, overflowCheckMs)
  const pumpTimer = setInterval(pump, overflowCheckMs)

  return {
    take,
    drain(deadlineMs) {
      mayStart = false
      return underWay.idle(deadlineMs)
    },
    resume() {
      mayStart = true
      pump()
    },
    abandon(partitions) {
      desk.forget(partitions)
      queue.removeWhere((job) => !job.lease.isHeld)
      awaitingTable = awaitingTable.filter((job) => job.lease.isHeld)
      for (const { partition } of partitions) newer.delete(partition)
    },
    inFlight: () => inFlight,
    queued: () => queue.size,
    newerPartitions: () => [...newer],
    close() {
      mayStart = false
      clearInterval(overflowTimer)
      clearInterval(pumpTimer)
    },
  }
}
