import { headerValue, type HeaderSource } from './headers.ts'
import type { Claim } from './store.ts'
import type { SignatureScheme, Verified } from './verify.ts'

/** A request whose signature was verified. */
export type Webhook = {
  /** The delivery id, the same on every attempt and replay. Signed only where the scheme is `standard`. */
  readonly id: string | null
  readonly scheme: SignatureScheme
  /** The signed time of this attempt, epoch ms. */
  readonly sentAt: number
  /** As they came, and as they were signed. */
  readonly body: Uint8Array
  /** Throws a TypeError where the body is not UTF-8. */
  text(): string
  /** Throws where the body is not JSON. */
  json(): unknown
  /** Any header of the request, by whatever case; not signed. */
  header(name: string): string | null
  /** Of this call: sent back as Request-Id, and named to repeats. */
  readonly requestId: string
  /** Null without `dedupe`. */
  readonly claim: Claim | null
}

export function webhookOf({ scheme, id, sentAt }: Verified, headers: HeaderSource, body: Uint8Array, requestId: string): Webhook {
  const text = (): string => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  return {
    id, scheme, sentAt, body, text, json: () => JSON.parse(text()) as unknown,
    header: (name) => headerValue(headers, name), requestId, claim: null,
  }
}
