import type { SubscriptionPolicy } from './policy.ts'

/** active: routed and sent; paused: routed, then parked until resumed; disabled: neither routed nor sent. */
export const subscriptionStates = ['active', 'paused', 'disabled'] as const
export type SubscriptionState = (typeof subscriptionStates)[number]

/** stripe: `X-Webhook-Signature` as Stripe's verifier reads it; standard: the three Standard Webhooks headers. */
export const signatureSchemes = ['stripe', 'standard'] as const
export type SignatureScheme = (typeof signatureSchemes)[number]

/** One signing secret. `expiresAt` (epoch ms) is set once a newer one has replaced it; null while it is current. */
export type SigningSecret = { readonly secret: string; readonly createdAt: number; readonly expiresAt: number | null }

export type CustomHeader = { readonly name: string; readonly value: string }

/** An endpoint's interest in event types. The last record written for an id is the truth for every reader. */
export type Subscription = {
  readonly id: string
  /** Whose subscription; immutable. null when the installation has no tenants. */
  readonly tenant: string | null
  /** Normalised (see endpoint-url.ts). May carry tokens: never shown, the endpoint key is. */
  readonly url: string
  readonly endpointKey: string
  /** Patterns: an exact type, `prefix.*`, or `*`. */
  readonly eventTypes: readonly string[]
  readonly state: SubscriptionState
  readonly signatureScheme: SignatureScheme
  /** Newest first, at least one. */
  readonly secrets: readonly SigningSecret[]
  readonly headers: readonly CustomHeader[]
  readonly policy: SubscriptionPolicy
  readonly description: string | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** A subscription as a table holds it: `offset` is its version, `appendedAt` (epoch ms, broker time) what `gone` is compared with. */
export type StoredSubscription = Subscription & { readonly offset: number; readonly appendedAt: number }
