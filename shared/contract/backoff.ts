import { adaptiveFactor, adaptiveFactors } from '../domain/backoff.ts'
import { retryAfterSpread, throttlingStatuses } from '../domain/decide.ts'
import { decayPerHour, recentAttempts } from '../domain/health.ts'
import { tierAllowanceMs } from '../domain/hops.ts'
import { additiveShare, type JitterKind, type Policy } from '../domain/policy.ts'
import { maxRetryAfterMs } from '../domain/retry-after.ts'
import { timeBudget, timetable, type PlannedAttempt, type TimeBudget } from '../domain/timetable.ts'
import { inWords } from './words.ts'

/** `max`: the cap, null where there is none; `factor` by the health of the endpoint. */
export type BackoffTerms = {
  readonly strategy: Policy['strategy']
  readonly formula: string
  readonly scheduleMs: readonly number[] | null
  readonly baseMs: number | null
  readonly capMs: number | null
  readonly jitter: { readonly kind: JitterKind; readonly formula: string; readonly drawnFrom: string }
  readonly maxAttempts: number
  readonly adaptive: {
    readonly isOn: boolean
    readonly factors: readonly { readonly factor: number; readonly healthAbove: number | null }[]
    readonly health: string
  }
  readonly retryAfter: { readonly capMs: number; readonly spread: number; readonly throttlingStatuses: readonly number[]; readonly rules: readonly string[] }
  readonly tiersMs: readonly number[]
  /** The most a stay in a tier may end late, ms. */
  readonly latestByMs: number
}

export function backoffTermsOf(policy: Policy, tiersMs: readonly number[]): BackoffTerms {
  const { strategy, jitter, maxAttempts } = policy
  const isDecorrelated = jitter === 'decorrelated'
  const usesSchedule = strategy === 'standard' && !isDecorrelated
  return {
    strategy, maxAttempts, tiersMs,
    formula: isDecorrelated ? 'the jitter alone' : usesSchedule ? 'schedule[attempt - 1] x factor' : 'min(base x 2^(attempt - 1) x factor, cap)',
    scheduleMs: usesSchedule ? policy.scheduleMs : null,
    baseMs: usesSchedule ? null : policy.baseMs,
    capMs: usesSchedule ? null : policy.maxMs,
    jitter: {
      kind: jitter, formula: jitterFormulas[jitter],
      drawnFrom: 'a generator seeded by delivery id, replay and attempt: processes that both saw a failure write the same wait',
    },
    adaptive: {
      isOn: policy.adaptive && !isDecorrelated, factors: factorTable(),
      health: `sum of success x e^(-${decayPerHour} x age in hours) over the endpoint's last ${recentAttempts} attempts, divided by their number`,
    },
    retryAfter: {
      capMs: maxRetryAfterMs, spread: retryAfterSpread, throttlingStatuses: [...throttlingStatuses],
      rules: [
        `where it is longer than the wait it replaces it, up to ${inWords(maxRetryAfterMs)}; up to ${retryAfterSpread * 100} % are added, as everybody was told the same`,
        `with ${[...throttlingStatuses].join(' and ')} nothing is sent to the endpoint before it has passed; what waited then comes back in line`,
      ],
    },
    latestByMs: Math.max(0, ...tiersMs.map(tierAllowanceMs)),
  }
}

const jitterFormulas: Readonly<Record<JitterKind, string>> = {
  additive: `delay + U(0, ${additiveShare * 100} % of the delay), below the cap where there is one`,
  full: 'U(0, delay)',
  equal: 'delay / 2 + U(0, delay / 2)',
  decorrelated: 'min(cap, U(base, 3 x last wait))',
}

/** Found by asking, so that it cannot differ from what is used. */
function factorTable(): BackoffTerms['adaptive']['factors'] {
  const hundredths = Array.from({ length: 101 }, (_, index) => index / 100)
  return adaptiveFactors.map((factor) => {
    const least = Math.min(...hundredths.filter((health) => adaptiveFactor(health) === factor))
    return { factor, healthAbove: least === 0 ? null : Number((least - 0.01).toFixed(2)) }
  })
}

/** A delivery that never succeeds: `nominalMs`, `bestMs` and `worstMs` from the beginning of its first attempt to the end of its last. */
export type TotalTimeBudget = TimeBudget & {
  /** The same policy with the adaptive factor, and without it, whichever of the two is in force. */
  readonly withAdaptive: TimeBudget
  readonly withoutAdaptive: TimeBudget
  readonly notIncluded: readonly string[]
}

export function totalTimeBudgetOf(policy: Policy, { latestByMs, retryAfter }: BackoffTerms, expiryMs: number): TotalTimeBudget {
  return {
    ...timeBudget(policy),
    withAdaptive: timeBudget({ ...policy, adaptive: true }), withoutAdaptive: timeBudget({ ...policy, adaptive: false }),
    notIncluded: [
      `a Retry-After, up to ${inWords(retryAfter.capMs)} for each wait`,
      `up to ${inWords(latestByMs)} by which each wait may end late`,
      'waiting for a paused subscription, a throttled endpoint, or one with as many requests in flight as it bears',
      `whatever the reason: ${inWords(expiryMs)} after it was routed a delivery is not tried again`,
    ],
  }
}

/** One attempt with the wait before it; all in ms, `earliestMs`, `nominalMs` and `latestMs` since the beginning of the first. */
export type AttemptTerms = {
  readonly attempt: number
  readonly waitBefore: { readonly earliestMs: number; readonly nominalMs: number; readonly latestMs: number } | null
  readonly earliestMs: number
  readonly nominalMs: number
  readonly latestMs: number
}

export function attemptsOf(policy: Policy): readonly AttemptTerms[] {
  const whole = ({ earliestMs, nominalMs, latestMs }: PlannedAttempt['begins']) =>
    ({ earliestMs: Math.floor(earliestMs), nominalMs: Math.round(nominalMs), latestMs: Math.ceil(latestMs) })
  return timetable(policy).map(({ attempt, wait, begins }) => ({ attempt, waitBefore: wait && whole(wait), ...whole(begins) }))
}
