import { isUtf8 } from 'node:buffer'
import { RecordError } from './record-error.ts'

/** First byte of every secret and custom header value in a record: how the rest is kept. */
const plainKind = 0x00

/**
 * Puts a secret text into its envelope. `subscriptionId` binds it to its subscription once envelopes are encrypted; a plain one is
 * not bound.
 */
export function sealSecret(text: string, subscriptionId: string): Buffer {
  if (subscriptionId === '') throw new Error('a secret is sealed for a subscription: its id is empty')
  return Buffer.concat([Buffer.from([plainKind]), Buffer.from(text, 'utf8')])
}

/**
 * The text in an envelope. No error shows any of it.
 * @throws RecordError: `unknown_schema` for a kind of envelope that only a newer posthouse knows, `unreadable` for a corrupt one
 */
export function openSecret(sealed: Buffer, subscriptionId: string): string {
  if (sealed.length === 0) throw new RecordError('unreadable', `a secret of ${subscriptionId} has no envelope`)
  if (sealed[0] !== plainKind) {
    throw new RecordError('unknown_schema', `a secret of ${subscriptionId} was written by a newer posthouse (envelope of kind ${sealed[0]}): upgrade this one`)
  }
  const text = sealed.subarray(1)
  if (!isUtf8(text)) throw new RecordError('unreadable', `a secret of ${subscriptionId} is not UTF-8`)
  return text.toString('utf8')
}
