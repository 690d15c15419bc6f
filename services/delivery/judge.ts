import { deliveryExpired, deadState, type DeadState } from '../../shared/domain/decide.ts'
import type { DeadLetterReason, Delivery } from '../../shared/domain/delivery.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'

/** What the table says of a delivery's subscription; `undefined`: no record of that id was read. */
export type SubscriptionLookup = StoredSubscription | 'deleted' | undefined

/** What an endpoint's state means for a delivery that is about to be sent. Times in epoch ms, broker time. */
export type EndpointView = {
  readonly goneAt: number | null
  readonly goneWrittenAt: number | null
  isThrottled(now: number): boolean
}

/**
 * What is to become of a delivery before an attempt.
 * `unknown`: nothing was read of its subscription, which proves nothing until a fetch begun later has returned.
 */
export type Verdict =
  | { readonly kind: 'attempt'; readonly subscription: StoredSubscription }
  | { readonly kind: 'park'; readonly why: 'paused' | 'throttled'; readonly subscription: StoredSubscription }
  | { readonly kind: 'dead'; readonly state: DeadState; readonly reason: DeadLetterReason; readonly subscription: StoredSubscription | null }
  | { readonly kind: 'cancelled'; readonly reason: 'deleted' | 'tenant_differs' | 'gone' }
  | { readonly kind: 'unknown' }

/** Pure. Only a tombstone that was read means deleted, and only what the subscription says now counts, not what it said when the event was routed. */
export function judge(input: {
  readonly delivery: Delivery
  readonly lookup: SubscriptionLookup
  readonly endpointOf: (key: string) => EndpointView
  readonly now: number
  readonly expiryMs: number
}): Verdict {
  const { delivery, lookup, now } = input
  if (lookup === 'deleted') return { kind: 'cancelled', reason: 'deleted' }
  if (lookup === undefined) {
    return deliveryExpired(delivery, now, input.expiryMs)
      ? dead('expired', null)
      : { kind: 'unknown' }
  }
  if (lookup.tenant !== delivery.tenant) return { kind: 'cancelled', reason: 'tenant_differs' }
  if (deliveryExpired(delivery, now, input.expiryMs)) return dead('expired', lookup)
  if (lookup.state === 'disabled') return dead('disabled', lookup)

  const endpoint = input.endpointOf(lookup.endpointKey)
  if (endpoint.goneAt !== null && lookup.appendedAt <= endpoint.goneAt) {
    // As for a disabled one: what was under way is kept, what came after it was gone is not wanted. A replay was a dead letter, and is again.
    return delivery.replay > 0 || delivery.routedAt <= (endpoint.goneWrittenAt ?? Infinity)
      ? dead('gone', lookup)
      : { kind: 'cancelled', reason: 'gone' }
  }
  if (lookup.state === 'paused') return { kind: 'park', why: 'paused', subscription: lookup }
  if (endpoint.isThrottled(now)) return { kind: 'park', why: 'throttled', subscription: lookup }
  return { kind: 'attempt', subscription: lookup }
}

const dead = (reason: DeadLetterReason, subscription: StoredSubscription | null): Verdict =>
  ({ kind: 'dead', state: deadState(reason), reason, subscription })
