import type { Policy } from '../domain/policy.ts'
import type { Values } from './settings.ts'

/**
 * The policy of a subscription that sets nothing. Under `standard` fewer attempts than the schedule allows cut it, so that there is always
 * one wait between two attempts; under `exponential` it is kept whole, for subscriptions that ask for `standard`.
 */
export const defaultPolicyOf = (values: Values): Policy => {
  const { retryStrategy: strategy, retrySchedule } = values
  const maxAttempts = values.retryMaxAttempts ?? retrySchedule.length + 1
  return {
    strategy,
    scheduleMs: strategy === 'standard' ? retrySchedule.slice(0, maxAttempts - 1) : retrySchedule,
    baseMs: values.retryBase,
    maxMs: values.retryMax,
    maxAttempts,
    // A dead endpoint would otherwise always get twice the standard schedule.
    adaptive: values.retryAdaptive ?? strategy === 'exponential',
    jitter: values.retryJitter,
    timeoutMs: values.attemptTimeout,
    statusClasses: new Map(),
  }
}
