import type { Decision } from '../../shared/domain/decide.ts'
import type { Attempt, DeadLetter, Delivery, PastAttempt } from '../../shared/domain/delivery.ts'
import { nextHop } from '../../shared/domain/hops.ts'
import type { Outcome } from '../../shared/domain/outcome.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import type { ConsumedRecord } from '../../shared/kafka/consumed-record.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import type { TopicNames } from '../../shared/kafka/topics.ts'
import { encodeAttempt } from '../../shared/records/attempt-codec.ts'
import { encodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import { fitDeadLetter } from '../../shared/records/dead-letter-fit.ts'
import { encodeDelivery } from '../../shared/records/delivery-codec.ts'
import { deadLetterHeaders, waitingHeaders } from '../../shared/records/record-headers.ts'

export type SettleContext = {
  readonly topics: TopicNames
  /** Delays of the tiers that new hops may use, ms. */
  readonly tiersMs: readonly number[]
}

/** What was known when the attempt was made, or when the delivery ended without one. */
export type Tried = {
  readonly subscription: StoredSubscription | null
  readonly endpointKey: string
  /** Epoch ms, broker time. */
  readonly startedAt: number
  readonly durationMs: number
  readonly outcome: Outcome | null
}

/** The records a decision causes; all of them are acknowledged before the delivery's own record counts as done. */
export function recordsOf(context: SettleContext, decision: Exclude<Decision, { kind: 'local' }>, tried: Tried): ProducedRecord[] {
  const { topics } = context
  if (decision.kind === 'success') {
    const status = tried.outcome?.kind === 'response' ? tried.outcome.status : null
    return [attemptRecord(topics, decision.delivery, tried, { state: 'success', status })]
  }
  if (decision.kind === 'retry') {
    const { delivery, attempt, dueAt, waitMs } = decision
    return [
      attemptRecord(topics, delivery, tried, { state: 'waiting', attempt, nextDueAt: dueAt }),
      waitingRecord(context, { key: tried.endpointKey, value: encodeDelivery(delivery), dueAt, leftMs: waitMs, timesParked: 0 }),
    ]
  }
  const [state, reason] = decision.kind === 'gone' ? (['permanent_failure', 'gone'] as const) : [decision.state, decision.reason]
  return deadRecords(context, decision.delivery, tried, { state, reason, attempt: decision.attempt, error: decision.error })
}

/** A dead letter and the record of its end. */
export function deadRecords(
  { topics }: SettleContext,
  delivery: Delivery,
  tried: Tried,
  end: Pick<DeadLetter, 'state' | 'reason'> & { readonly attempt: PastAttempt | null; readonly error: string | null },
): ProducedRecord[] {
  const last = end.attempt ?? delivery.attempts.at(-1)
  const deadLetter: DeadLetter = fitDeadLetter({
    delivery, state: end.state, reason: end.reason, diedAt: Math.round(tried.startedAt + tried.durationMs), endpointKey: tried.endpointKey,
    lastStatus: last?.status ?? null, lastError: end.error ?? last?.error ?? null,
    subscription: tried.subscription && withoutSecrets(tried.subscription), shortened: null,
  })
  return [
    attemptRecord(topics, delivery, tried, { state: end.state, attempt: end.attempt, reason: end.reason }),
    {
      topic: topics.dlq, key: `${delivery.id}.${delivery.replay}`,
      value: encodeDeadLetter(deadLetter), headers: deadLetterHeaders(deadLetter),
    },
  ]
}

/** A delivery that is no longer wanted leaves no dead letter, only the record of its end. */
export function cancelledRecord({ topics }: SettleContext, delivery: Delivery, tried: Tried, reason: string): ProducedRecord {
  return attemptRecord(topics, delivery, tried, { state: 'cancelled', reason })
}

/** A delivery sent to wait without an attempt: the same bytes. */
export function parkedRecord(
  context: SettleContext, record: ConsumedRecord, wait: { readonly key: string; readonly dueAt: number; readonly leftMs: number; readonly timesParked: number },
): ProducedRecord {
  return waitingRecord(context, { ...wait, value: record.value })
}

function waitingRecord({ topics, tiersMs }: SettleContext, wait: {
  readonly key: string
  readonly value: Buffer | null
  readonly dueAt: number
  readonly leftMs: number
  readonly timesParked: number
}): ProducedRecord {
  const hop = nextHop(wait.leftMs, tiersMs)
  return {
    topic: hop.kind === 'tier' ? topics.tier(hop.delayMs) : topics.soon,
    key: wait.key, value: wait.value, headers: waitingHeaders(Math.ceil(wait.dueAt), wait.timesParked),
  }
}

function attemptRecord(topics: TopicNames, delivery: Delivery, tried: Tried, end: {
  readonly state: Attempt['state']
  readonly attempt?: PastAttempt | null
  readonly status?: number | null
  readonly reason?: string
  readonly nextDueAt?: number
}): ProducedRecord {
  const failed = end.attempt ?? null
  const attempt: Attempt = {
    deliveryId: delivery.id, replay: delivery.replay, attempt: delivery.attemptsMade,
    subscriptionId: delivery.subscriptionId, endpointKey: tried.endpointKey, tenant: delivery.tenant,
    eventId: delivery.eventId, eventType: delivery.eventType,
    startedAt: Math.round(tried.startedAt), durationMs: Math.round(tried.durationMs),
    status: end.status ?? failed?.status ?? null, failureClass: failed?.failureClass ?? null, error: failed?.error ?? null,
    excerpt: failed?.excerpt ?? null, state: end.state, reason: end.reason ?? null,
    nextDueAt: end.nextDueAt === undefined ? null : Math.ceil(end.nextDueAt),
  }
  return { topic: topics.attempts, key: tried.endpointKey, value: encodeAttempt(attempt) }
}

function withoutSecrets(subscription: StoredSubscription): NonNullable<DeadLetter['subscription']> {
  const { url, eventTypes, state, signatureScheme, headers, description } = subscription
  // A URL that cannot be requested ends here too, and must not be the fault of this record.
  return { host: URL.parse(url)?.host ?? '', eventTypes, state, signatureScheme, headerNames: headers.map(({ name }) => name), description }
}
