import type { FailureClass } from './classify.ts'
import { formatDuration } from './duration.ts'

export const jitterKinds = ['additive', 'full', 'equal', 'decorrelated'] as const
export type JitterKind = (typeof jitterKinds)[number]

/** What a subscription may set for itself; null means "the default of the installation". */
export type SubscriptionPolicy = {
  readonly strategy: 'standard' | 'exponential' | null
  /** Waits between attempts in ms (`standard` only): scheduleMs[n - 1] follows attempt n. */
  readonly scheduleMs: readonly number[] | null
  readonly baseMs: number | null
  readonly maxMs: number | null
  readonly maxAttempts: number | null
  readonly adaptive: boolean | null
  readonly jitter: JitterKind | null
  readonly timeoutMs: number | null
  /** Failure class by HTTP status, where it differs from the published table. */
  readonly statusClasses: readonly { readonly status: number; readonly failureClass: FailureClass }[]
}

export const noPolicy: SubscriptionPolicy = {
  strategy: null, scheduleMs: null, baseMs: null, maxMs: null, maxAttempts: null,
  adaptive: null, jitter: null, timeoutMs: null, statusClasses: [],
}

/** A policy with every default filled in: what `decide` works with. All durations in ms. */
export type Policy = {
  readonly strategy: 'standard' | 'exponential'
  readonly scheduleMs: readonly number[]
  readonly baseMs: number
  readonly maxMs: number
  readonly maxAttempts: number
  readonly adaptive: boolean
  readonly jitter: JitterKind
  readonly timeoutMs: number
  readonly statusClasses: ReadonlyMap<number, FailureClass>
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** Additive jitter, as a share of the delay. */
export const additiveShare = 0.1

/** What a subscription gets that sets nothing, unless the installation has defaults of its own. */
export const defaultPolicy: Policy = {
  strategy: 'standard',
  scheduleMs: [minute, 5 * minute, 30 * minute, 2 * hour, 8 * hour, 24 * hour, 48 * hour],
  baseMs: minute,
  maxMs: 24 * hour,
  maxAttempts: 8,
  adaptive: false,
  jitter: 'additive',
  timeoutMs: 30 * second,
  statusClasses: new Map(),
}

/**
 * Fills in what a subscription leaves open. Total: a record written under other defaults still gives a policy that works
 * (an attempt limit beyond the schedule is cut to it, a class that only we may use is ignored).
 */
export function resolvePolicy(own: SubscriptionPolicy, defaults: Policy): Policy {
  const strategy = own.strategy ?? defaults.strategy
  const maxMs = own.maxMs ?? defaults.maxMs
  // Adaptive is on by default for exponential only: under the standard schedule a dead endpoint would always get twice it.
  const adaptiveDefault = strategy === defaults.strategy ? defaults.adaptive : strategy === 'exponential'
  return {
    strategy,
    ...attemptsAndSchedule(own, defaults, strategy),
    baseMs: Math.min(own.baseMs ?? defaults.baseMs, maxMs),
    maxMs,
    adaptive: own.adaptive ?? adaptiveDefault,
    jitter: own.jitter ?? defaults.jitter,
    timeoutMs: own.timeoutMs ?? defaults.timeoutMs,
    statusClasses: new Map([
      ...defaults.statusClasses,
      ...own.statusClasses.filter(({ failureClass }) => failureClass !== 'local').map(({ status, failureClass }) => [status, failureClass] as const),
    ]),
  }
}

/** Under `standard` there is one wait between two attempts: whichever of the two is shorter decides. */
function attemptsAndSchedule(own: SubscriptionPolicy, defaults: Policy, strategy: Policy['strategy']): Pick<Policy, 'maxAttempts' | 'scheduleMs'> {
  const scheduleMs = own.scheduleMs ?? defaults.scheduleMs
  if (strategy === 'exponential') return { maxAttempts: own.maxAttempts ?? defaults.maxAttempts, scheduleMs }
  const attempts = own.maxAttempts ?? (own.scheduleMs === null && defaults.strategy === 'standard' ? defaults.maxAttempts : scheduleMs.length + 1)
  const maxAttempts = Math.max(1, Math.min(attempts, scheduleMs.length + 1))
  return { maxAttempts, scheduleMs: scheduleMs.slice(0, maxAttempts - 1) }
}

/**
 * The delay after `attemptsMade` attempts (from 1), before jitter, ms; `factor` is the adaptive one. The only place
 * where a schedule is indexed. Exponential: `base * 2^(attemptsMade - 1) * factor`, at most `maxMs`.
 */
export function plannedDelayMs(policy: Policy, attemptsMade: number, factor: number): number {
  if (policy.strategy === 'standard') return (policy.scheduleMs[attemptsMade - 1] ?? policy.scheduleMs.at(-1) ?? 0) * factor
  // 2^60 ms is past any cap; a larger power could overflow to Infinity, or with another base to NaN.
  return Math.min(policy.baseMs * 2 ** Math.min(attemptsMade - 1, 60) * factor, policy.maxMs)
}

/** One line for people: what the policy does, and where it differs from what everybody expects. */
export function describePolicy(policy: Policy): string {
  const { maxAttempts, jitter, adaptive, timeoutMs, statusClasses } = policy
  const overrides = [...statusClasses].map(([status, failureClass]) => `${status} ${failureClass}`)
  return [
    ...(maxAttempts === 1 ? ['1 attempt'] : [`${maxAttempts} attempts ${describeWaits(policy)}`, `${jitter} jitter`]),
    // Decorrelated waits come from the last wait alone.
    ...(adaptive && jitter !== 'decorrelated' && maxAttempts > 1 ? ['adaptive'] : []),
    ...(timeoutMs === defaultPolicy.timeoutMs ? [] : [`timeout ${formatDuration(timeoutMs)}`]),
    ...overrides,
  ].join(', ')
}

function describeWaits({ strategy, scheduleMs, baseMs, maxMs, jitter }: Policy): string {
  if (jitter === 'decorrelated') return `after ${formatDuration(baseMs)} to three times the last wait, at most ${formatDuration(maxMs)}`
  return strategy === 'standard'
    ? `after ${scheduleMs.map(formatDuration).join(' ')}`
    : `doubling from ${formatDuration(baseMs)} to at most ${formatDuration(maxMs)}`
}
