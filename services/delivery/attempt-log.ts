import type { FailureClass } from '../../shared/domain/classify.ts'
import type { Decision } from '../../shared/domain/decide.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Job } from './job.ts'
import type { Tried } from './settle.ts'

/** One wide line an attempt. A receiver's failure is expected and so `info`; our own trouble is not. Holds no URL, header or body. */
export function logAttempt(log: Log, { job, tried, failureClass, decision, maxAttempts }: {
  readonly job: Job
  readonly tried: Tried
  readonly failureClass: 'delivered' | FailureClass
  readonly decision: Decision
  readonly maxAttempts: number
}): void {
  const level = failureClass === 'local' ? 'warn' : 'info'
  if (!log.writes(level)) return
  const { delivery } = job
  const { outcome } = tried
  log[level]('attempt', {
    delivery: delivery.id,
    event: delivery.eventId,
    type: delivery.eventType,
    subscription: delivery.subscriptionId,
    endpoint: tried.endpointKey,
    attempt: delivery.attemptsMade + 1,
    maxAttempts,
    ...(delivery.tenant === null ? {} : { tenant: delivery.tenant }),
    ...(delivery.replay === 0 ? {} : { replay: delivery.replay }),
    class: failureClass,
    ...(outcome?.kind === 'response' ? { status: outcome.status } : {}),
    ...(outcome?.kind === 'failure' ? { failure: outcome.error, phase: outcome.phase, detail: outcome.detail } : {}),
    durationMs: Math.round(tried.durationMs),
    next: decision.kind,
    ...('waitMs' in decision ? { waitMs: Math.round(decision.waitMs) } : {}),
    ...('reason' in decision ? { reason: decision.reason } : {}),
  })
}
