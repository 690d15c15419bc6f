import { createHmac } from 'node:crypto'
import { checkCustomHeader } from './custom-headers.ts'
import type { Delivery } from './delivery.ts'
import { secretKey } from './secrets.ts'
import type { SigningSecret, Subscription } from './subscription.ts'

export type AttemptHeaderInput = {
  readonly subscription: Pick<Subscription, 'signatureScheme' | 'secrets' | 'headers'>
  readonly delivery: Pick<Delivery, 'id' | 'eventType' | 'body'>
  /** Counted from 1. */
  readonly attempt: number
  /** When this attempt is sent, epoch ms: receivers refuse signatures more than 5 minutes old, so never an earlier time. */
  readonly sentAt: number
  /** Version of posthouse, for the User-Agent. */
  readonly version: string
  /** 0, then the number of the replay. */
  readonly replay: number
}

/**
 * The headers of one attempt as a flat list of names and values in turn, the custom ones last. Every value is ASCII.
 * The signature covers the very bytes of `delivery.body`.
 * Throws where no secret is active or a custom header could not have been accepted: both are our own trouble, as they are
 * checked when the subscription is written and again when it is read. The message holds no secret and no header value.
 */
export function attemptHeaders({ subscription, delivery, attempt, sentAt, version, replay }: AttemptHeaderInput): string[] {
  const headers = [
    'Content-Type', 'application/json',
    'X-Webhook-Event', delivery.eventType,
    'X-Webhook-Delivery', delivery.id,
    'X-Webhook-Attempt', String(attempt),
    ...signatureHeaders(subscription, delivery, Math.floor(sentAt / 1000), sentAt),
    'Idempotency-Key', delivery.id,
    'User-Agent', `posthouse/${version}`,
  ]
  if (replay > 0) headers.push('X-Webhook-Replay', String(replay))
  for (const { name, value } of subscription.headers) {
    const reason = checkCustomHeader(name, value)
    if (reason !== null) throw new Error(`a custom header of the subscription cannot be sent: ${reason}`)
    headers.push(name, value)
  }
  return headers
}

/**
 * The secrets a request is signed with at a time (epoch ms): those not expired, newest first, so that a receiver that only
 * looks at the first signature is on the current one.
 */
export function activeSecrets(secrets: readonly SigningSecret[], at: number): SigningSecret[] {
  return secrets.filter(({ expiresAt }) => expiresAt === null || expiresAt > at).sort((a, b) => b.createdAt - a.createdAt)
}

/**
 * stripe: `X-Webhook-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]`, HMAC-SHA256 of `<t>.<body>`, as Stripe's verifiers read it.
 * standard: the three headers of Standard Webhooks 1.0.0 in its place, HMAC-SHA256 of `<id>.<t>.<body>`, base64.
 */
function signatureHeaders(
  { signatureScheme, secrets }: AttemptHeaderInput['subscription'],
  { id, body }: AttemptHeaderInput['delivery'],
  seconds: number,
  sentAt: number,
): string[] {
  const active = activeSecrets(secrets, sentAt)
  if (active.length === 0) throw new Error('the subscription has no active signing secret: rotate its secret to make one')
  const signWith = (prefix: string, encoding: 'hex' | 'base64') =>
    active.map(({ secret }) => createHmac('sha256', secretKey(signatureScheme, secret)).update(prefix).update(body).digest(encoding))
  if (signatureScheme === 'stripe') {
    const signatures = signWith(`${seconds}.`, 'hex')
    return ['X-Webhook-Signature', [`t=${seconds}`, ...signatures.map((signature) => `v1=${signature}`)].join(',')]
  }
  const signatures = signWith(`${id}.${seconds}.`, 'base64')
  return [
    'webhook-id', id,
    'webhook-timestamp', String(seconds),
    'webhook-signature', signatures.map((signature) => `v1,${signature}`).join(' '),
  ]
}
