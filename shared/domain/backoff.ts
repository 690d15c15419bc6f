import { hashOfParts } from './ids.ts'
import { additiveShare, plannedDelayMs, type Policy } from './policy.ts'

/** What the draws of one wait depend on, and nothing else. */
export type WaitSeed = { readonly deliveryId: string; readonly replay: number; readonly attempt: number }

export type WaitInput = {
  readonly policy: Policy
  /** Attempts made, the failed one included: from 1. */
  readonly attemptsMade: number
  /** The wait before the failed attempt, ms; 0 when there was none. */
  readonly lastWaitMs: number
  /** Health score of the endpoint (0 to 1), the failed attempt included. */
  readonly health: number
  readonly seed: WaitSeed
}

/** Every value of the adaptive factor. */
export const adaptiveFactors = [0.5, 1, 2] as const

/** 0.5 for an endpoint that is well, 2 for one that is not: the waits of a well one are short, as it will soon be back. */
export function adaptiveFactor(health: number): number {
  if (health > 0.9) return 0.5
  return health > 0.5 ? 1 : 2
}

/**
 * Draws from [0, 1), the same for the same seed and purpose in every process: two processes that both saw one failure (at a
 * hand-over) then write the same wait, and the second record is recognised as a repeat.
 */
export function seededDraw({ deliveryId, replay, attempt }: WaitSeed, purpose: string): number {
  const hash = hashOfParts([deliveryId, String(replay), String(attempt), purpose])
  // 53 bits, all that a double can hold.
  return Number(hash.readBigUInt64BE(0) >> 11n) / 2 ** 53
}

/**
 * How long to wait after a failed attempt, whole ms. The published delay, with the factor where the policy is adaptive,
 * then the jitter: `additive` adds up to 10 %; the others replace the delay.
 */
export function waitMs({ policy, attemptsMade, lastWaitMs, health, seed }: WaitInput): number {
  const delay = plannedDelayMs(policy, attemptsMade, policy.adaptive ? adaptiveFactor(health) : 1)
  return Math.round(jittered(policy, delay, lastWaitMs, seededDraw(seed, 'wait')))
}

function jittered(policy: Policy, delay: number, lastWaitMs: number, draw: number): number {
  if (policy.jitter === 'additive') return additive(policy, delay, draw)
  if (policy.jitter === 'full') return draw * delay
  if (policy.jitter === 'equal') return delay / 2 + (draw * delay) / 2
  return decorrelated(policy, lastWaitMs, draw)
}

function additive({ strategy, maxMs }: Policy, delay: number, draw: number): number {
  const jitter = draw * additiveShare * delay
  if (strategy === 'standard' || delay + jitter < maxMs) return delay + jitter
  // At the cap everyone would wait exactly that long; so the jitter goes below it.
  return maxMs - jitter
}

/** U(base, 3 x the last wait). Without a last wait it starts from the base; one that a Retry-After made counts as it was. */
function decorrelated({ baseMs, maxMs }: Policy, lastWaitMs: number, draw: number): number {
  const highest = 3 * Math.max(lastWaitMs, baseMs)
  const wait = baseMs + draw * (highest - baseMs)
  // As above: below the cap, never on it. Not below the base either.
  return wait < maxMs ? wait : maxMs - draw * additiveShare * (maxMs - baseMs)
}

/** Bounds of one wait over all draws and all that the endpoint's health may be; `nominalMs`: without jitter and factor. */
export type WaitRange = { readonly earliestMs: number; readonly nominalMs: number; readonly latestMs: number }

/**
 * How short and how long `waitMs` may be after `attemptsMade` attempts, before its rounding, ms. `last`: the wait before it, or null.
 * Decorrelated waits have no nominal value of their own: it is the middle of the range that begins from the last nominal one.
 */
export function waitRange(policy: Policy, attemptsMade: number, last: WaitRange | null): WaitRange {
  const { jitter, baseMs, maxMs, adaptive } = policy
  if (jitter === 'decorrelated') {
    const highest = (lastMs = 0) => 3 * Math.max(lastMs, baseMs)
    return {
      earliestMs: baseMs,
      nominalMs: Math.min(maxMs, (baseMs + highest(last?.nominalMs)) / 2),
      latestMs: Math.min(maxMs, highest(last?.latestMs)),
    }
  }
  const delays = (adaptive ? adaptiveFactors : [1]).map((factor) => plannedDelayMs(policy, attemptsMade, factor))
  return {
    earliestMs: Math.min(...delays.map((delay) => shortest(policy, delay))),
    nominalMs: plannedDelayMs(policy, attemptsMade, 1),
    latestMs: Math.max(...delays.map((delay) => longest(policy, delay))),
  }
}

function shortest({ jitter, strategy, maxMs }: Policy, delay: number): number {
  if (jitter === 'full') return 0
  if (jitter === 'equal') return delay / 2
  return strategy === 'standard' ? delay : Math.min(delay, maxMs - additiveShare * delay)
}

function longest({ jitter, strategy, maxMs }: Policy, delay: number): number {
  if (jitter !== 'additive') return delay
  return strategy === 'standard' ? delay * (1 + additiveShare) : Math.min(delay * (1 + additiveShare), maxMs)
}
