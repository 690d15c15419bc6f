import type { FailureClass } from './classify.ts'

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
