import type { Delivery } from '../../shared/domain/delivery.ts'
import type { Outcome } from '../../shared/domain/outcome.ts'
import { resolvePolicy, type Policy } from '../../shared/domain/policy.ts'
import { attemptHeaders } from '../../shared/domain/signed-headers.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import type { HttpClient } from '../../shared/http/client.ts'
import type { Log } from '../../shared/log/log.ts'
import { version } from '../../shared/version.ts'

/** The HTTP side of an attempt. */
export type Requests = {
  policyOf(subscription: StoredSubscription): Policy
  /** Signs and sends; never rejects. */
  post(delivery: Delivery, subscription: StoredSubscription, policy: Policy): Promise<{ readonly outcome: Outcome; readonly durationMs: number }>
}

const readLimitBytes = 16 * 1024
const excerptBytes = 1024

export function createRequests(options: {
  readonly http: Pick<HttpClient, 'post'>
  readonly policyDefaults: Policy
  readonly keepsExcerpt: boolean
  readonly log: Log
}): Requests {
  // By the record itself: a subscription that is written again is another object.
  const policies = new WeakMap<StoredSubscription, Policy>()
  return {
    policyOf(subscription) {
      let policy = policies.get(subscription)
      if (!policy) {
        policy = resolvePolicy(subscription.policy, options.policyDefaults)
        policies.set(subscription, policy)
      }
      return policy
    },

    async post(delivery, subscription, policy) {
      try {
        const headers = attemptHeaders({
          subscription, delivery, attempt: delivery.attemptsMade + 1, sentAt: Date.now(), version, replay: delivery.replay,
        })
        const { outcome, durationMs } = await options.http.post({
          url: subscription.url, headers, body: delivery.body, deadlineMs: policy.timeoutMs,
          excerptBytes: options.keepsExcerpt ? excerptBytes : 0, readLimitBytes,
        })
        return { outcome, durationMs: Math.round(durationMs) }
      } catch (error) {
        options.log.error('an attempt could not be made by a fault of ours', { delivery: delivery.id, subscription: subscription.id, error })
        return { outcome: { kind: 'failure', error: 'internal', phase: 'before_send', detail: 'a fault of posthouse' }, durationMs: 0 }
      }
    },
  }
}
