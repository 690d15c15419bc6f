import { durationMs, type Duration } from './duration.ts'
import { headerValue, type HeaderSource } from './headers.ts'
import { isSignedByAny, parseStandardSignatures, parseStripeSignature, standardKey, timestampPattern, type SignatureClaim } from './signatures.ts'

/** `stripe`: X-Webhook-Signature, posthouse's default. `standard`: the three headers of Standard Webhooks 1.0.0. */
export type SignatureScheme = 'stripe' | 'standard'

export type VerifyRequest = {
  readonly headers: HeaderSource
  /** The bytes as they came, or the very text they are: never what a parser made of them. */
  readonly body: Uint8Array | string
}

export type VerifyOptions = {
  /** One, or all that are in use: while a secret is being replaced, the new and the old one. */
  readonly secrets: string | readonly string[]
  /** Only this one is accepted. Default: `standard` where there is a `webhook-signature`, else `stripe`. */
  readonly scheme?: SignatureScheme
  /** How far the signed time may be off, to either side. Default 5 minutes; `Infinity` for any, to look at what was stored. */
  readonly tolerance?: Duration
  /** Epoch ms, for tests. */
  readonly now?: number
}

export type Verified = {
  readonly ok: true
  readonly scheme: SignatureScheme
  /**
   * The delivery id. `standard` signs it. `stripe` does not (the signature covers time and body): whoever has a request of the
   * last minutes can send it again under another id. Null where there is none.
   */
  readonly id: string | null
  readonly isIdSigned: boolean
  /** The signed time of the attempt, epoch ms, whole seconds. */
  readonly sentAt: number
}

export type RefusalReason =
  | 'signature-missing' | 'signature-malformed' | 'signature-mismatch' | 'secret-unusable'
  | 'id-missing' | 'id-malformed' | 'timestamp-malformed' | 'timestamp-too-old' | 'timestamp-too-new'

export type Refused = {
  readonly ok: false
  readonly reason: RefusalReason
  /** A sentence for a log. It holds no secret and nothing that was sent but the time. */
  readonly message: string
}

export type Verification = Verified | Refused

/** No dot, which in Standard Webhooks would let a byte of the id count as one of the time. */
const idPattern = /^[\u0021-\u002d\u002f-\u007e]{1,255}$/

/**
 * Says whether a request was signed with one of the secrets, and lately. Call it before the body is parsed and before anything
 * of the request is believed. A request that is not in order is a value; only a call that cannot be meant throws (TypeError or
 * RangeError: no secret, a body that was parsed already).
 */
export function verify({ headers, body }: VerifyRequest, { secrets, scheme, tolerance = '5m', now = Date.now() }: VerifyOptions): Verification {
  const texts = checkedSecrets(secrets)
  const toleranceMs = durationMs(tolerance, 'tolerance')
  const bytes = rawBytes(body)
  const used = scheme ?? (headerValue(headers, 'webhook-signature') === null ? 'stripe' : 'standard')
  return used === 'standard' ? verifyStandard(headers, bytes, texts, toleranceMs, now) : verifyStripe(headers, bytes, texts, toleranceMs, now)
}

/** HMAC-SHA256 of `<t>.<body>`; the key is the secret's text, `whsec_` included, as in Stripe's libraries. */
function verifyStripe(headers: HeaderSource, body: Uint8Array, secrets: readonly string[], toleranceMs: number, now: number): Verification {
  const header = headerValue(headers, 'x-webhook-signature')
  if (header === null) return refuse('signature-missing', 'there is no X-Webhook-Signature header')
  const claim = parseStripeSignature(header)
  if (claim === null) return refuse('signature-malformed', 'X-Webhook-Signature is not t=<seconds>,v1=<hex>')
  const id = headerValue(headers, 'x-webhook-delivery') ?? headerValue(headers, 'idempotency-key')
  if (id !== null && !idPattern.test(id)) return malformedId('X-Webhook-Delivery')
  return judge(claim, secrets, `${claim.timestamp}.`, body, toleranceMs, now, { scheme: 'stripe', id, isIdSigned: false })
}

/** HMAC-SHA256 of `<id>.<t>.<body>`; the key is what the base64 behind `whsec_` stands for. */
function verifyStandard(headers: HeaderSource, body: Uint8Array, secrets: readonly string[], toleranceMs: number, now: number): Verification {
  const header = headerValue(headers, 'webhook-signature')
  if (header === null) return refuse('signature-missing', 'there is no webhook-signature header')
  const id = headerValue(headers, 'webhook-id')
  if (id === null) return refuse('id-missing', 'there is no webhook-id header')
  if (!idPattern.test(id)) return malformedId('webhook-id')
  const timestamp = headerValue(headers, 'webhook-timestamp') ?? ''
  if (!timestampPattern.test(timestamp)) return refuse('timestamp-malformed', 'webhook-timestamp is not a number of seconds')
  const keys = secrets.flatMap((secret) => standardKey(secret) ?? [])
  if (keys.length === 0) {
    return refuse('secret-unusable', 'none of the secrets is whsec_ and padded base64, as Standard Webhooks needs: give the one shown when the subscription was created')
  }
  const claim = { timestamp, signatures: parseStandardSignatures(header) }
  return judge(claim, keys, `${id}.${timestamp}.`, body, toleranceMs, now, { scheme: 'standard', id, isIdSigned: true })
}

/** The signature first: "too old" said of what anyone may have written would lead astray. */
function judge(
  { timestamp, signatures }: SignatureClaim, keys: readonly (string | Uint8Array)[], prefix: string, body: Uint8Array,
  toleranceMs: number, now: number, found: Omit<Verified, 'ok' | 'sentAt'>,
): Verification {
  if (signatures.length === 0) return refuse('signature-malformed', 'there is no signature of version v1 in the right form')
  if (!isSignedByAny(keys, prefix, body, signatures)) {
    return refuse('signature-mismatch', 'the signature fits none of the secrets: another secret, or a body that is not the bytes as they came')
  }
  const sentAt = Number(timestamp) * 1_000
  const off = `the signed time is ${Math.round(Math.abs(now - sentAt) / 1_000)} s`
  if (now - sentAt > toleranceMs) return refuse('timestamp-too-old', `${off} old: a repeated request, or this machine's clock is ahead`)
  if (sentAt - now > toleranceMs) return refuse('timestamp-too-new', `${off} in the future: this machine's clock, or the sender's, is wrong`)
  return { ok: true, ...found, sentAt }
}

/** As a list. Throws a TypeError where there is none, or an empty one. */
export function checkedSecrets(secrets: VerifyOptions['secrets']): readonly string[] {
  const texts = typeof secrets === 'string' ? [secrets] : secrets
  if (Array.isArray(texts) && texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '')) return texts
  throw new TypeError('give at least one secret, and none that is empty: anyone could sign with that')
}

function rawBytes(body: Uint8Array | string): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body, 'utf8')
  if (body instanceof Uint8Array) return body
  throw new TypeError('verify needs the body as bytes or text, as it came: keep parsers of JSON away from this route')
}

function malformedId(header: string): Refused {
  return refuse('id-malformed', `${header} is not 1 to 255 visible ASCII characters without a dot`)
}

function refuse(reason: RefusalReason, message: string): Refused {
  return { ok: false, reason, message }
}
