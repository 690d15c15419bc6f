import { RecordError } from './record-error.ts'

/** First byte of every secret and custom header value in a record: how the rest is kept. */
const plainKind = 0

/**
 * Puts a secret text into its envelope. `subscriptionId` binds it to its subscription once envelopes are encrypted; a plain one is
 * not bound.
 */
export function sealSecret(text: string, subscriptionId: string): Buffer {
  if (subscriptionId === '') throw new Error('a secret is sealed for a subscription: its id is empty')
  return Buffer.concat([Buffer.from([plainKind]), Buffer.from(text)])
}

/** @throws RecordError: `unknown_schema` for a kind of envelope that a newer posthouse wrote */
export function openSecret(sealed: Buffer, subscriptionId: string): string {
  if (sealed.length === 0) throw new RecordError('unreadable', `a secret of ${subscriptionId} is empty`)
  if (sealed[0] !== plainKind) {
    throw new RecordError('unknown_schema', `a secret of ${subscriptionId} is kept in a way (kind ${sealed[0]}) that only a newer posthouse can read`)
  }
  return sealed.toString('utf8', 1)
}
