import { withAttempt } from './attempt-history.ts'
import { seededDraw, waitMs } from './backoff.ts'
import { classify, failureCode, type FailureClass } from './classify.ts'
import type { DeadLetterReason, Delivery, PastAttempt, TerminalState } from './delivery.ts'
import type { Outcome } from './outcome.ts'
import type { Policy } from './policy.ts'
import { parseRetryAfterMs } from './retry-after.ts'

/** Retry-After from these also asks for quiet on behalf of the whole endpoint. */
export const throttlingStatuses: ReadonlySet<number> = new Set([429, 503])
const goneStatus = 410
/** Our own bug, met so often on one record, is taken to be the record's: it must not hold its partition for ever. */
export const maxInternalFailures = 3
/** Waits after local trouble: doubling from the first, at most the second, ms. */
export const localWaitMs = { first: 1_000, max: 30_000 } as const
/** Spread added to a Retry-After that is longer than the backoff: everyone was told the same time. */
export const retryAfterSpread = 0.1

export type DecideInput = {
  readonly delivery: Delivery
  readonly outcome: Outcome
  readonly policy: Policy
  /** Health score of the endpoint (0 to 1), this attempt included. */
  readonly health: number
  /** Epoch ms. */
  readonly startedAt: number
  readonly durationMs: number
  /** End of the attempt, epoch ms in broker time: waits count from here. */
  readonly endedAt: number
  /** How often this record has already ended in local trouble, and how often of those in our own bug. */
  readonly localFailures: number
  readonly internalFailures: number
}

/**
 * What happens next to a delivery. `delivery` is its new value, with the attempt counted and in the history; `attempt` the
 * attempt's entry there. `throttleMs`: quiet the endpoint asked for, from now; null where it did not.
 */
export type Decision =
  | { readonly kind: 'success'; readonly delivery: Delivery }
  | {
      readonly kind: 'retry'
      readonly delivery: Delivery
      readonly attempt: PastAttempt
      readonly waitMs: number
      /** Epoch ms, broker time. */
      readonly dueAt: number
      readonly throttleMs: number | null
    }
  | {
      readonly kind: 'dead'
      readonly state: DeadState
      readonly reason: DeadLetterReason
      readonly delivery: Delivery
      /** Null where the last try was local trouble and no attempt of the endpoint's. */
      readonly attempt: PastAttempt | null
      /** Short stable code. */
      readonly error: string
      readonly throttleMs: number | null
    }
  /** 410: a dead letter with state `permanent_failure` and reason `gone`; the endpoint is to be marked. */
  | { readonly kind: 'gone'; readonly delivery: Delivery; readonly attempt: PastAttempt; readonly error: string }
  /** Our own trouble: no attempt, the delivery as it was; stop taking and try it again after the wait. */
  | { readonly kind: 'local'; readonly error: string; readonly waitMs: number; readonly dueAt: number }

export type DeadState = Exclude<TerminalState, 'success' | 'cancelled'>

/** The state in which a delivery ends for a reason. */
export function deadState(reason: DeadLetterReason): DeadState {
  if (reason === 'expired') return 'expired'
  return reason === 'permanent_failure' || reason === 'gone' ? 'permanent_failure' : 'dlq'
}

/** Whether a delivery has waited too long to be tried again: `expiryMs` after it was routed or replayed. Times in broker time. */
export function deliveryExpired(delivery: Pick<Delivery, 'routedAt'>, now: number, expiryMs: number): boolean {
  return now - delivery.routedAt >= expiryMs
}

/** Decides what an outcome means for its delivery; pure. The states are those of the retry state machine in the docs. */
export function decide(input: DecideInput): Decision {
  const { delivery, outcome, policy } = input
  const failureClass = classify(outcome, policy.statusClasses)
  const attemptsMade = delivery.attemptsMade + 1
  if (failureClass === 'delivered') return { kind: 'success', delivery: { ...delivery, attemptsMade } }
  const error = failureCode(outcome)
  if (failureClass === 'local') return decideLocal(input, error)

  const attempt = pastAttempt(input, attemptsMade, failureClass, error)
  const failed: Delivery = { ...delivery, attemptsMade, attempts: withAttempt(delivery.attempts, attempt) }
  if (failureClass === 'permanent' && outcome.kind === 'response' && outcome.status === goneStatus) {
    return { kind: 'gone', delivery: failed, attempt, error }
  }
  const retryAfterMs = retryAfterOf(outcome, input.endedAt)
  const isThrottling = outcome.kind === 'response' && throttlingStatuses.has(outcome.status)
  // Also where this delivery ends: the endpoint asked for quiet, not the delivery.
  const throttleMs = isThrottling && retryAfterMs !== null && retryAfterMs > 0 ? retryAfterMs : null
  const ended = failureClass === 'permanent' ? 'permanent_failure' : attemptsMade >= policy.maxAttempts ? 'exhausted' : null
  if (ended !== null) return { kind: 'dead', state: deadState(ended), reason: ended, delivery: failed, attempt, error, throttleMs }
  const wait = nextWait(input, attemptsMade, retryAfterMs)
  return { kind: 'retry', delivery: { ...failed, lastWaitMs: wait }, attempt, waitMs: wait, dueAt: input.endedAt + wait, throttleMs }
}

function pastAttempt({ outcome, startedAt, durationMs }: DecideInput, attempt: number, failureClass: FailureClass, error: string): PastAttempt {
  const isResponse = outcome.kind === 'response'
  return {
    attempt, startedAt, durationMs, status: isResponse ? outcome.status : null, failureClass, error,
    excerpt: isResponse ? outcome.excerpt : null,
  }
}

function retryAfterOf(outcome: Outcome, endedAt: number): number | null {
  return outcome.kind === 'response' ? parseRetryAfterMs(outcome.retryAfter, outcome.date, endedAt) : null
}

/** The policy's wait, or what the receiver asked for where that is longer: never before it. */
function nextWait({ delivery, policy, health }: DecideInput, attemptsMade: number, retryAfterMs: number | null): number {
  const seed = { deliveryId: delivery.id, replay: delivery.replay, attempt: attemptsMade }
  const backoff = waitMs({ policy, attemptsMade, lastWaitMs: delivery.lastWaitMs, health, seed })
  if (retryAfterMs === null || retryAfterMs <= backoff) return backoff
  return Math.round(retryAfterMs * (1 + retryAfterSpread * seededDraw(seed, 'retry-after')))
}

function decideLocal({ delivery, endedAt, localFailures, internalFailures }: DecideInput, error: string): Decision {
  if (error === 'internal' && internalFailures + 1 >= maxInternalFailures) {
    return { kind: 'dead', state: deadState('internal'), reason: 'internal', delivery, attempt: null, error, throttleMs: null }
  }
  const seed = { deliveryId: delivery.id, replay: delivery.replay, attempt: delivery.attemptsMade + 1 }
  const longest = Math.min(localWaitMs.first * 2 ** (localFailures + 1), localWaitMs.max)
  const wait = Math.round(longest / 2 + (seededDraw(seed, `local-${localFailures}`) * longest) / 2)
  return { kind: 'local', error, waitMs: wait, dueAt: endedAt + wait }
}
