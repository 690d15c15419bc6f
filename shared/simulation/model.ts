import { seededDraw } from '../domain/backoff.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { JitterKind, Policy } from '../domain/policy.ts'

/** `none` is no choice of a policy: it is what jitter is there to prevent, for comparison. */
export const simulatedJitters = ['none', 'additive', 'full', 'equal', 'decorrelated'] as const
export type SimulatedJitter = JitterKind | 'none'

/** One endpoint and what is sent to it. Time begins at 0; durations in ms. */
export type SimulationModel = {
  readonly deliveries: number
  /** They are routed evenly over this span, from 0. */
  readonly overMs: number
  /** From 0 on the endpoint is away for so long: every attempt fails. */
  readonly outageMs: number
  /** Afterwards each attempt succeeds with this probability, independently; 0 to 1. */
  readonly availability: number
  /** What a failed attempt returns. */
  readonly failure: SimulatedFailure
  /** From the request to the status line. */
  readonly latencyMs: number
  readonly seed: number
  /** As the installation has them. */
  readonly expiryMs: number
  readonly tiersMs: readonly number[]
  readonly endpointCap: { readonly start: number; readonly max: number }
}

export type SimulatedFailure = number | 'connect_refused' | 'timeout'

/** What an attempt that begins at `at` returns, and when. The draw is the same for every jitter, so that only the jitter differs. */
export function answerOf(
  model: SimulationModel, { timeoutMs }: Policy, attempt: { readonly at: number; readonly deliveryId: string; readonly attempt: number },
): { readonly outcome: Outcome; readonly durationMs: number } {
  const { availability, latencyMs, failure } = model
  const isUp = attempt.at >= model.outageMs && (availability >= 1 || draw(attempt) < availability)
  if (isUp || typeof failure === 'number') {
    if (latencyMs >= timeoutMs) return timeout(timeoutMs)
    return { outcome: { kind: 'response', status: isUp ? 200 : Number(failure), retryAfter: [], date: null, excerpt: null }, durationMs: latencyMs }
  }
  if (failure === 'timeout') return timeout(timeoutMs)
  return { outcome: { kind: 'failure', error: failure, phase: 'before_send', detail: '' }, durationMs: refusedAfterMs }
}

/** A refusal takes one way to the endpoint and back. */
const refusedAfterMs = 1

const timeout = (timeoutMs: number): { readonly outcome: Outcome; readonly durationMs: number } =>
  ({ outcome: { kind: 'failure', error: 'timeout', phase: 'sent', detail: '' }, durationMs: timeoutMs })

const draw = ({ deliveryId, attempt }: { readonly deliveryId: string; readonly attempt: number }): number =>
  seededDraw({ deliveryId, replay: 0, attempt }, 'simulated-answer')
