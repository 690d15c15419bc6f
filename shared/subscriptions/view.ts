import type { StoredSubscription } from '../domain/subscription.ts'

/** A subscription as it is shown: no secret, no value of a custom header, and of the URL the host only, as it may carry a token. */
export type SubscriptionView = {
  readonly id: string
  readonly tenant: string | null
  readonly host: string
  readonly endpointKey: string
  readonly eventTypes: readonly string[]
  readonly state: string
  readonly signatureScheme: string
  readonly headerNames: readonly string[]
  readonly policy: StoredSubscription['policy']
  readonly description: string | null
  readonly secrets: readonly { readonly createdAt: string; readonly expiresAt: string | null }[]
  readonly createdAt: string
  readonly updatedAt: string
  /** What --if-version takes, and an ETag has. */
  readonly version: number
}

export const hostOf = (url: string): string => URL.parse(url)?.host ?? ''
const iso = (at: number): string => new Date(at).toISOString()

export function viewOf(subscription: StoredSubscription): SubscriptionView {
  const { id, tenant, url, endpointKey, eventTypes, state, signatureScheme, headers, policy, description, secrets, offset } = subscription
  return {
    id, tenant, host: hostOf(url), endpointKey, eventTypes, state, signatureScheme, policy, description,
    headerNames: headers.map(({ name }) => name),
    secrets: secrets.map(({ createdAt, expiresAt }) =>
      ({ createdAt: iso(createdAt), expiresAt: expiresAt === null ? null : iso(expiresAt) })),
    createdAt: iso(subscription.createdAt), updatedAt: iso(subscription.updatedAt), version: offset,
  }
}
