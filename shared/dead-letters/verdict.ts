import type { Delivery } from '../domain/delivery.ts'
import type { StoredSubscription } from '../domain/subscription.ts'
import { keepsRequest } from '../records/dead-letter-fit.ts'
import type { FoundDeadLetter } from './scan.ts'
import { describeClearing, type Clearing } from './tombstone.ts'

/** Why a dead letter cannot be replayed, in one word for programs. */
export const refusalReasons = [
  'already_replayed', 'already_discarded', 'not_kept', 'newer', 'unreadable', 'incomplete',
  'subscription_deleted', 'subscription_unknown', 'subscription_newer', 'subscription_disabled', 'tenant_differs', 'endpoint_gone',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** `message` says what to do as well. */
export type Refusal = { readonly reason: RefusalReason; readonly message: string }

/** What the subscriptions table says now; `newer`: its record is of a newer posthouse. */
export type SubscriptionNow = StoredSubscription | 'deleted' | 'newer' | undefined

export type ReplayVerdict =
  | { readonly kind: 'replay'; readonly delivery: Delivery; readonly subscription: StoredSubscription }
  /** It was replayed as this number by somebody who was killed before he could clear it, and that failed: nothing but to clear it. */
  | { readonly kind: 'leftover'; readonly asReplay: number }
  | ({ readonly kind: 'refused' } & Refusal)

export type VerdictInput = {
  readonly letter: FoundDeadLetter
  readonly subscription: SubscriptionNow
  /** When the endpoint that the subscription has now answered 410, see GoneEndpoints. */
  readonly goneAt: number | null
  /** What is known of its tombstone, where it has one. */
  readonly clearing: Clearing | null
  /** The number that a replay gets of what was replayed or discarded before; null: such a one is refused. */
  readonly forcedReplay: number | null
  /** Epoch ms, broker time: expiry and order count from here. */
  readonly routedAt: number
}

/**
 * Whether a dead letter is sent again, and as what: the same delivery id, bytes, subscription and origin, attempts from 1, the next
 * replay number. Pure.
 * What would end as `cancelled` or as a new dead letter at once is refused, and stays.
 */
export function judgeReplay({ letter, subscription, goneAt, clearing, forcedReplay, routedAt }: VerdictInput): ReplayVerdict {
  const { content, standing, id } = letter
  if (content.kind !== 'readable') {
    return refused(content.kind, `${content.detail}${content.kind === 'newer' ? '; it stays as it is' : '; nothing but discarding it is left'}`)
  }
  if (standing.kind === 'superseded' && forcedReplay === null) return { kind: 'leftover', asReplay: standing.byReplay }
  if (standing.kind === 'cleared' && forcedReplay === null) return refusedAsCleared(clearing)
  const { delivery, shortened } = content.deadLetter
  if (!keepsRequest(shortened)) {
    return refused('incomplete', `it was shortened when it was kept (${shortened}), so what was to be sent is no longer whole: have its producer send the event again`)
  }
  const { subscriptionId } = delivery
  if (subscription === 'deleted') return refused('subscription_deleted', `its subscription ${subscriptionId} was deleted: what is sent for it would be cancelled`)
  if (subscription === 'newer') return refused('subscription_newer', `its subscription ${subscriptionId} was written by a newer posthouse: upgrade this one`)
  if (subscription === undefined) return refused('subscription_unknown', `there is no record of its subscription ${subscriptionId}, in this installation at least`)
  if (subscription.tenant !== delivery.tenant) return refused('tenant_differs', `its subscription ${subscriptionId} is another tenant's`)
  if (subscription.state === 'disabled') {
    return refused('subscription_disabled', `its subscription ${subscriptionId} is disabled: enable it first ("posthouse subscriptions enable ${subscriptionId}")`)
  }
  if (goneAt !== null && subscription.appendedAt <= goneAt) {
    return refused('endpoint_gone', `its endpoint ${subscription.endpointKey} answered 410 and counts as gone: write the subscription again first ("posthouse subscriptions enable ${subscriptionId}")`)
  }
  const replay = standing.kind === 'open' ? id.replay + 1 : Math.max(forcedReplay ?? 0, id.replay + 1)
  return { kind: 'replay', subscription, delivery: { ...delivery, replay, routedAt, attemptsMade: 0, lastWaitMs: 0, attempts: [] } }
}

/** @param clearing null: its tombstone does not say. `at`: when, epoch ms */
export function refusedAsCleared(clearing: Clearing | null, at: number | null = null): { readonly kind: 'refused' } & Refusal {
  const reason = clearing?.how === 'discarded' ? 'already_discarded' : 'already_replayed'
  const when = at === null ? '' : ` at ${new Date(at).toISOString()}`
  return refused(reason, `it was ${describeClearing(clearing)}${when}`)
}

function refused(reason: RefusalReason, message: string): { readonly kind: 'refused' } & Refusal {
  return { kind: 'refused', reason, message }
}
