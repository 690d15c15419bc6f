import type { SignatureScheme } from './subscription.ts'

const prefix = 'whsec_'
/** Key sizes of Standard Webhooks 1.0.0, bytes. */
const keyBytes = { min: 24, max: 64 } as const
/** Length of a `stripe` secret without its prefix, characters. */
const textLength = { min: 24, max: 256 } as const
/** Any random key of 24 bytes has more than this many different ones; `aaaa...` and `abab...` have not. */
const fewestDifferent = 8

const visibleAscii = /^[\u0021-\u007e]*$/

/**
 * The HMAC key of a secret. stripe: its text as UTF-8, `whsec_` included, as Stripe's own libraries have it. standard: the
 * bytes behind `whsec_`. So one secret is two different keys. Throws on a standard secret that does not decode: signing
 * with the few bytes that a lenient decoder finds in it would be signing with almost nothing.
 */
export function secretKey(scheme: SignatureScheme, secret: string): Buffer {
  if (scheme === 'stripe') return Buffer.from(secret, 'utf8')
  const key = decodeStandard(secret)
  if (key === null) throw new Error('a signing secret of the subscription is not whsec_ and padded base64: rotate it')
  return key
}

/** Says why a secret is refused for a scheme, or null. Used when one is brought along; ours are made by `newSecret`. */
export function checkSecret(scheme: SignatureScheme, secret: string): string | null {
  if (secret === '') return 'the secret is empty'
  if (!visibleAscii.test(secret)) return 'the secret contains blanks, a line break or something other than ASCII'
  if (scheme === 'standard') {
    if (!secret.startsWith(prefix)) return `the secret must begin with ${prefix}`
    const key = decodeStandard(secret)
    if (key === null) return `what follows ${prefix} is not padded base64`
    if (key.length < keyBytes.min || key.length > keyBytes.max) return `the secret must decode to ${keyBytes.min} to ${keyBytes.max} bytes`
    return new Set(key).size < fewestDifferent ? tooRegular : null
  }
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret
  if (text.length < textLength.min || text.length > textLength.max) {
    return `the secret must have ${textLength.min} to ${textLength.max} characters, not counting ${prefix}`
  }
  return new Set(text).size < fewestDifferent ? tooRegular : null
}

const tooRegular = `the secret is too regular: use random bytes`

function decodeStandard(secret: string): Buffer | null {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : ''
  const key = Buffer.from(text, 'base64')
  // Node skips what is not base64; and of two spellings that decode alike the other side may refuse the odd one. So only
  // the one spelling that this key would be written in.
  return text !== '' && key.toString('base64') === text ? key : null
}
