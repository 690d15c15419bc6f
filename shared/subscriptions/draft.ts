import { checkCustomHeader } from '../domain/custom-headers.ts'
import { formatDuration } from '../domain/duration.ts'
import { normaliseUrl } from '../domain/endpoint-url.ts'
import { endpointKey, newSecret, newSubscriptionId } from '../domain/ids.ts'
import { checkPattern } from '../domain/matching.ts'
import { validatePolicy } from '../domain/policy-check.ts'
import { noPolicy, type Policy, type SubscriptionPolicy } from '../domain/policy.ts'
import { checkSecret } from '../domain/secrets.ts'
import type { CustomHeader, SignatureScheme, SigningSecret, Subscription, SubscriptionState } from '../domain/subscription.ts'

/** What somebody wants a subscription to be; what is left out stays as it is, or takes its default in a new one. */
export type SubscriptionChange = {
  readonly url?: string
  readonly eventTypes?: readonly string[]
  readonly state?: SubscriptionState
  readonly signatureScheme?: SignatureScheme
  /** Replaces every secret there was, at once. */
  readonly secret?: string
  /** A new secret (one of ours where none is brought along) signs first; those there were go on signing beside it for `overlapMs`. */
  readonly rotation?: { readonly overlapMs: number; readonly secret?: string }
  readonly headers?: readonly CustomHeader[]
  readonly policy?: SubscriptionPolicy
  readonly description?: string | null
}

export type NewSubscription = SubscriptionChange & {
  readonly url: string
  readonly eventTypes: readonly string[]
  readonly tenant?: string | null
}

export type Rules = {
  readonly allowsHttp: boolean
  readonly policyDefaults: Policy
}

export type Drafted = { readonly subscription: Subscription } | { readonly problems: readonly string[] }

const maxPatterns = 100
const maxHeaders = 32
const maxTenantCharacters = 256
/** Each active secret is one more signature in a header of every request. */
const maxSecrets = 5
const maxOverlapMs = 30 * 86_400_000

/** A new subscription, with an id and (unless one is brought along) a secret of its own. `now` epoch ms. */
export function draftNew(wanted: NewSubscription, rules: Rules, now: number): Drafted {
  const tenant = wanted.tenant ?? null
  const problems = tenant !== null && (tenant === '' || tenant.length > maxTenantCharacters)
    ? [`the tenant must have 1 to ${maxTenantCharacters} characters; leave it out where there are no tenants`]
    : []
  const blank: Subscription = {
    id: newSubscriptionId(), tenant, url: '', endpointKey: '', eventTypes: [], state: 'active', signatureScheme: 'stripe',
    secrets: [], headers: [], policy: noPolicy, description: null, createdAt: now, updatedAt: now - 1,
  }
  return draft(blank, { secret: newSecret(), ...wanted }, rules, now, problems)
}

/** An existing subscription changed. Id, tenant and creation time stay. */
export function draftChange(present: Subscription, change: SubscriptionChange, rules: Rules, now: number): Drafted {
  return draft(present, change, rules, now, [])
}

function draft(present: Subscription, change: SubscriptionChange, rules: Rules, now: number, earlier: readonly string[]): Drafted {
  const problems = [...earlier]
  const located = change.url === undefined ? present : locate(change.url, rules, problems)
  const eventTypes = change.eventTypes ?? present.eventTypes
  if (change.eventTypes) checkPatterns(change.eventTypes, problems)
  const headers = change.headers ?? present.headers
  if (change.headers) checkHeaders(change.headers, problems)
  const policy = change.policy ?? present.policy
  if (change.policy) problems.push(...validatePolicy(change.policy, rules.policyDefaults))
  const signatureScheme = change.signatureScheme ?? present.signatureScheme
  const secrets = secretsAfter(present.secrets, change, now, problems)
  for (const { secret, expiresAt } of secrets) {
    const reason = checkSecret(signatureScheme, secret)
    // An older one still signs every request: one that cannot would make each of them fail until it has expired.
    if (reason !== null) problems.push(expiresAt === null ? reason : `${reason}; it is an older one that is active still: wait until it has expired, or rotate without overlap`)
  }
  if (problems.length > 0) return { problems }
  return {
    subscription: {
      ...present, url: located.url, endpointKey: located.endpointKey, eventTypes, headers, policy, signatureScheme, secrets,
      state: change.state ?? present.state,
      description: change.description === undefined ? present.description : change.description,
      // Always later than the record it is based on, whatever the clocks: the writer tells a successor from a predecessor by it.
      updatedAt: Math.max(now, present.updatedAt + 1),
    },
  }
}

/** Newest first. Those that have expired are dropped, whatever else changes. */
function secretsAfter(present: readonly SigningSecret[], change: SubscriptionChange, now: number, problems: string[]): readonly SigningSecret[] {
  const active = present.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
  const { secret, rotation } = change
  if (secret !== undefined && rotation !== undefined) problems.push('give either a secret or a rotation: the one replaces at once, the other overlaps')
  if (secret !== undefined) return [{ secret, createdAt: now, expiresAt: null }]
  if (rotation === undefined) return active
  const { overlapMs } = rotation
  if (!(overlapMs >= 0 && overlapMs <= maxOverlapMs)) problems.push(`the overlap of a rotation must be from 0 to ${formatDuration(maxOverlapMs)}`)
  const kept = overlapMs > 0 ? active.map((one) => ({ ...one, expiresAt: Math.min(one.expiresAt ?? Infinity, now + overlapMs) })) : []
  if (kept.some((one) => one.secret === rotation.secret)) problems.push('the new secret of a rotation is one that is active already')
  if (kept.length >= maxSecrets) problems.push(`${kept.length} secrets are active already, at most ${maxSecrets}: wait until one has expired, or rotate without overlap`)
  return [{ secret: rotation.secret ?? newSecret(), createdAt: now, expiresAt: null }, ...kept]
}

function locate(text: string, rules: Rules, problems: string[]): { url: string; endpointKey: string } {
  const normalised = normaliseUrl(text, { allowHttp: rules.allowsHttp })
  if (normalised.ok) return { url: normalised.url, endpointKey: endpointKey(normalised.url) }
  problems.push(normalised.reason)
  return { url: '', endpointKey: '' }
}

function checkPatterns(patterns: readonly string[], problems: string[]): void {
  if (patterns.length === 0) problems.push('give at least one event type: an exact one, prefix.*, or *')
  if (patterns.length > maxPatterns) problems.push(`${patterns.length} event types are too many: at most ${maxPatterns}, or use prefix.*`)
  for (const pattern of patterns) {
    const reason = checkPattern(pattern)
    if (reason !== null) problems.push(reason)
  }
}

function checkHeaders(headers: readonly CustomHeader[], problems: string[]): void {
  if (headers.length > maxHeaders) problems.push(`${headers.length} custom headers are too many: at most ${maxHeaders}`)
  const seen = new Set<string>()
  for (const { name, value } of headers) {
    const reason = checkCustomHeader(name, value)
    if (reason !== null) problems.push(reason)
    if (seen.has(name.toLowerCase())) problems.push(`the custom header ${name} is given twice`)
    seen.add(name.toLowerCase())
  }
}
