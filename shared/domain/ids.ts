import { createHash, randomBytes } from 'node:crypto'

// RFC 4648 section 6 in lower case: letters and digits only, so that an id survives headers, file names, labels and double
// clicks. No dot: Standard Webhooks joins the id to the time and the body with dots before signing.
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * Ids built from a hash keep 160 of its 256 bits: 32 characters, and about 2^80 work for anyone who would like two
 * of his own events to share an id.
 */
const idBytes = 20

/** Lower-case base32 without padding. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(held >>> bits) & 31]
    }
    held &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + alphabet[(held << (5 - bits)) & 31]
}

/**
 * Hash over parts so that no two different lists give the same input: each part is a tag, a length and its bytes.
 * A tag of 0 is null (not the empty string), 1 UTF-8. Text with half a surrogate pair has no UTF-8 of its own (all such
 * halves become U+FFFD, and two events would share an id), so it goes in as UTF-16 under tag 2.
 */
export function hashOfParts(parts: readonly (string | null)[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) {
    const tag = part === null ? 0 : part.isWellFormed() ? 1 : 2
    const bytes = Buffer.from(part ?? '', tag === 2 ? 'utf16le' : 'utf8')
    const head = Buffer.alloc(5)
    head.writeUInt8(tag, 0)
    head.writeUInt32BE(bytes.length, 1)
    hash.update(head).update(bytes)
  }
  return hash.digest()
}

/** Key of an endpoint: `ep_` and 32 characters. The URL itself may carry a token, and this is shown everywhere. */
export function endpointKey(normalisedUrl: string): string {
  return `ep_${base32(createHash('sha256').update(normalisedUrl, 'utf8').digest().subarray(0, idBytes))}`
}

/**
 * Id of a delivery: `del_` and 32 characters, the same whenever the same event is routed to the same subscription.
 * It is the receiver's idempotency key, so it must never depend on time, process or attempt.
 */
export function deliveryId(of: {
  readonly tenant: string | null
  readonly source: string
  readonly eventId: string
  readonly subscriptionId: string
}): string {
  return `del_${base32(hashOfParts([of.tenant, of.source, of.eventId, of.subscriptionId]).subarray(0, idBytes))}`
}

/** A fresh subscription id: `sub_` and 26 characters, 128 random bits, never used again. */
export function newSubscriptionId(): string {
  return `sub_${base32(randomBytes(16))}`
}

/** A fresh signing secret: `whsec_` and the base64 of 32 random bytes; good for both signature schemes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Digest of a request body, 32 hex digits (128 bits of SHA-256): tells two events that share an id apart. */
export function bodyDigest(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex').slice(0, 32)
}
