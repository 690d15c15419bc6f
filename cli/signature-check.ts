import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { secretKey } from '../shared/domain/secrets.ts'

/**
 * `unchecked`: no secret was given. `missing`: nothing in the request looks like a signature. `stale`: right, but not made within
 * 5 minutes of now.
 */
export type SignatureVerdict = 'verified' | 'wrong' | 'stale' | 'missing' | 'unchecked'

const toleranceSeconds = 300

/**
 * Checks a request as a receiver should: `X-Webhook-Signature` as Stripe has it, or the three headers of Standard Webhooks.
 * Any of the secrets and any of the signatures may match, as there are several of each while a secret is rotated. `now` epoch ms.
 */
export function checkSignature(
  headers: IncomingHttpHeaders, body: Buffer, secrets: readonly string[], now: number,
): SignatureVerdict {
  const signed = stripeSigned(headers, body, secrets) ?? standardSigned(headers, body, secrets)
  if (signed === null) return secrets.length === 0 ? 'unchecked' : 'missing'
  if (secrets.length === 0) return 'unchecked'
  const isRight = signed.given.some((given) => signed.expected.some((expected) => isEqual(given, expected)))
  if (!isRight) return 'wrong'
  return Math.abs(now / 1000 - signed.seconds) <= toleranceSeconds ? 'verified' : 'stale'
}

type Signed = { readonly seconds: number; readonly given: readonly string[]; readonly expected: readonly string[] }

function stripeSigned(headers: IncomingHttpHeaders, body: Buffer, secrets: readonly string[]): Signed | null {
  const header = headers['x-webhook-signature']
  if (typeof header !== 'string') return null
  const parts = header.split(',').map((part) => part.trim().split('=', 2))
  const time = parts.find(([name]) => name === 't')?.[1] ?? ''
  return {
    seconds: Number(time),
    given: parts.flatMap(([name, value]) => (name === 'v1' && value !== undefined ? [value] : [])),
    expected: secrets.map((secret) => createHmac('sha256', secretKey('stripe', secret)).update(`${time}.`).update(body).digest('hex')),
  }
}

function standardSigned(headers: IncomingHttpHeaders, body: Buffer, secrets: readonly string[]): Signed | null {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || typeof time !== 'string' || typeof signatures !== 'string') return null
  return {
    seconds: Number(time),
    given: signatures.split(' ').flatMap((part) => (part.startsWith('v1,') ? [part.slice('v1,'.length)] : [])),
    expected: secrets.flatMap((secret) => standardSignature(secret, `${id}.${time}.`, body)),
  }
}

/** Empty where the secret is none of the Standard Webhooks kind: it cannot have signed this. */
function standardSignature(secret: string, prefix: string, body: Buffer): readonly string[] {
  try {
    return [createHmac('sha256', secretKey('standard', secret)).update(prefix).update(body).digest('base64')]
  } catch {
    return []
  }
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
