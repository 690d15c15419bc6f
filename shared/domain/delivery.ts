import type { FailureClass } from './classify.ts'

/** A record header as it was read; values are bytes, names may repeat. */
export type RecordHeader = { readonly name: string; readonly value: Buffer }

/** Where the event was read. `timestamp` is the record's own, epoch ms. */
export type Origin = { readonly topic: string; readonly partition: number; readonly offset: number; readonly timestamp: number }

/** One past attempt, as kept in the delivery's own history. */
export type PastAttempt = {
  /** Counted from 1. */
  readonly attempt: number
  readonly startedAt: number
  readonly durationMs: number
  /** HTTP status, or null where none was read. */
  readonly status: number | null
  readonly failureClass: FailureClass
  /** Short stable code: `http_503`, `connect_timeout`, `dns_not_found` ... */
  readonly error: string
  /** At most 1 KiB of the response body as text, or null. */
  readonly excerpt: string | null
}

/** One event for one subscription until it is settled. */
export type Delivery = {
  readonly id: string
  /** 0, then the number of the replay that made it. */
  readonly replay: number
  readonly subscriptionId: string
  readonly tenant: string | null
  readonly eventId: string
  readonly eventType: string
  /** Epoch ms, broker time, when the router (or a replay) wrote it first; expiry and order count from here. */
  readonly routedAt: number
  readonly origin: Origin
  /** Key of the source record, kept for the dead letter. */
  readonly sourceKey: Buffer | null
  /** Headers of the source record, kept byte for byte. */
  readonly sourceHeaders: readonly RecordHeader[]
  /** The request body: the same bytes on every attempt and replay. */
  readonly body: Buffer
  /** Attempts made so far; the next one has number attemptsMade + 1. */
  readonly attemptsMade: number
  /** The wait chosen after the last attempt, ms; 0 before the first (decorrelated jitter builds on it). */
  readonly lastWaitMs: number
  /** History, oldest first, bounded: it may be shorter than attemptsMade. */
  readonly attempts: readonly PastAttempt[]
}

/** Where a delivery ends. `success` and `cancelled` leave no dead letter. */
export type TerminalState = 'success' | 'permanent_failure' | 'dlq' | 'cancelled' | 'expired'

/** The record of one attempt, or of an end without one, in the `attempts` topic. */
export type Attempt = {
  readonly deliveryId: string
  readonly replay: number
  /** Counted from 1; for an end without an attempt, the attempts made before it. */
  readonly attempt: number
  readonly subscriptionId: string
  readonly endpointKey: string
  readonly tenant: string | null
  readonly eventId: string
  readonly eventType: string
  readonly startedAt: number
  readonly durationMs: number
  readonly status: number | null
  readonly failureClass: FailureClass | null
  readonly error: string | null
  readonly excerpt: string | null
  /** State of the delivery after it. */
  readonly state: TerminalState | 'waiting'
  /** Why it ended, where it ended without success. */
  readonly reason: string | null
  /** Due time of the next attempt, epoch ms in broker time, while waiting. */
  readonly nextDueAt: number | null
}

export const deadLetterReasons = ['exhausted', 'permanent_failure', 'expired', 'disabled', 'gone', 'internal'] as const
export type DeadLetterReason = (typeof deadLetterReasons)[number]

/** The whole story of a delivery that could not be made. Carries no secret and no value of a custom header. */
export type DeadLetter = {
  readonly delivery: Delivery
  readonly state: Exclude<TerminalState, 'success' | 'cancelled'>
  readonly reason: DeadLetterReason
  readonly diedAt: number
  readonly endpointKey: string
  readonly lastStatus: number | null
  readonly lastError: string | null
  /** The subscription as it was: its URL's host only, patterns, state, signature scheme, names of custom headers. */
  readonly subscription: {
    readonly host: string
    readonly eventTypes: readonly string[]
    readonly state: string
    readonly signatureScheme: string
    readonly headerNames: readonly string[]
    readonly description: string | null
  } | null
  /** What was left out so that it fits into a record; null: nothing. */
  readonly shortened: string | null
}
