import { failureClasses } from '../domain/classify.ts'
import { jitterKinds, type SubscriptionPolicy } from '../domain/policy.ts'
import { signatureSchemes, subscriptionStates, type Subscription } from '../domain/subscription.ts'
import { oneOf } from './checks.ts'
import { RecordError } from './record-error.ts'
import { openSecret, sealSecret } from './secret-envelope.ts'
import { wireOf } from './wire.ts'

const wire = wireOf('subscription')
const strategies = ['standard', 'exponential'] as const

/** As the schema has it: secrets and the values of custom headers are sealed. */
type Stored = Omit<Subscription, 'secrets' | 'headers'> & {
  readonly secrets: readonly { readonly sealed: Buffer; readonly createdAt: number; readonly expiresAt: number | null }[]
  readonly headers: readonly { readonly name: string; readonly sealed: Buffer }[]
}

/** The value of a record in `subscriptions`. */
export function encodeSubscription(subscription: Subscription): Buffer {
  const { id } = subscription
  const stored: Stored = {
    ...subscription,
    secrets: subscription.secrets.map(({ secret, createdAt, expiresAt }) => ({ sealed: sealSecret(secret, id), createdAt, expiresAt })),
    headers: subscription.headers.map(({ name, value }) => ({ name, sealed: sealSecret(value, id) })),
  }
  return wire.write(stored, 1024)
}

/** @throws RecordError */
export function decodeSubscription(bytes: Buffer): Subscription {
  const stored = wire.read(bytes) as Stored
  const { id } = stored
  oneOf(subscriptionStates, stored.state, 'state')
  oneOf(signatureSchemes, stored.signatureScheme, 'signature scheme')
  checkPolicy(stored.policy)
  if (stored.secrets.length === 0) throw new RecordError('unreadable', `the subscription ${id} has no secret`)
  return {
    ...stored,
    secrets: stored.secrets.map(({ sealed, createdAt, expiresAt }) => ({ secret: openSecret(sealed, id), createdAt, expiresAt })),
    headers: stored.headers.map(({ name, sealed }) => ({ name, value: openSecret(sealed, id) })),
  }
}

function checkPolicy({ strategy, jitter, statusClasses }: SubscriptionPolicy): void {
  if (strategy !== null) oneOf(strategies, strategy, 'strategy')
  if (jitter !== null) oneOf(jitterKinds, jitter, 'jitter')
  for (const { failureClass } of statusClasses) oneOf(failureClasses, failureClass, 'failure class')
}
