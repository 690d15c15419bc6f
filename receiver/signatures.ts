import { createHmac, timingSafeEqual } from 'node:crypto'

/** What a request says of its signature, before anything of it is believed. */
export type SignatureClaim = {
  /** Seconds since 1970 as sent, digits only: the very text that was signed. */
  readonly timestamp: string
  /** The signatures of a version that is known, 32 bytes each. Others are ignored, so that nobody can ask for a weaker one. */
  readonly signatures: readonly Uint8Array[]
}

export const timestampPattern = /^\d{1,12}$/
const hexPattern = /^[0-9a-f]{64}$/
const base64Pattern = /^[A-Za-z0-9+/]{43}=$/

/** `t=<seconds>,v1=<hex>[,v1=<hex>]`, as Stripe has it. Null where it is not of that form, or has two times. */
export function parseStripeSignature(header: string): SignatureClaim | null {
  const fields = header.split(',').map((field) => field.trim().split('='))
  const timestamps = fields.filter(([name]) => name === 't')
  const timestamp = timestamps[0]?.[1] ?? ''
  if (timestamps.length !== 1 || !timestampPattern.test(timestamp)) return null
  const texts = fields.filter(([name]) => name === 'v1').map(([, text = '']) => text)
  return { timestamp, signatures: texts.filter((text) => hexPattern.test(text)).map((text) => Buffer.from(text, 'hex')) }
}

/** `v1,<base64>[ v1,<base64>]` of Standard Webhooks 1.0.0; its asymmetric `v1a` is not known here. */
export function parseStandardSignatures(header: string): readonly Uint8Array[] {
  const texts = header.split(' ').flatMap((entry) => (entry.startsWith('v1,') ? [entry.slice(3)] : []))
  return texts.filter((text) => base64Pattern.test(text)).map((text) => Buffer.from(text, 'base64'))
}

/**
 * The bytes behind `whsec_`, as Standard Webhooks has it. Null where they are not padded base64: signing with the few bytes
 * that a lenient decoder finds in it would be signing with almost nothing.
 */
export function standardKey(secret: string): Uint8Array | null {
  const text = secret.startsWith('whsec_') ? secret.slice(6) : secret
  const key = Buffer.from(text, 'base64')
  return text !== '' && key.toString('base64') === text ? key : null
}

/** Whether one of the signatures was made with one of the keys. The time taken does not tell which, or how much of one is right. */
export function isSignedByAny(
  keys: readonly (string | Uint8Array)[], prefix: string, body: Uint8Array, signatures: readonly Uint8Array[],
): boolean {
  let isSigned = false
  for (const key of keys) {
    const expected = createHmac('sha256', key).update(prefix, 'utf8').update(body).digest()
    for (const signature of signatures) {
      // All are compared, also after one was right.
      if (timingSafeEqual(signature, expected)) isSigned = true
    }
  }
  return isSigned
}
