import type { Policy } from '../domain/policy.ts'
import { attemptHeaders } from '../domain/signed-headers.ts'
import type { SignatureScheme } from '../domain/subscription.ts'
import { classificationOf, type Consequence } from './classification.ts'
import { inWords } from './words.ts'

export type IdempotencyTerms = {
  readonly key: {
    readonly form: string
    readonly madeOf: readonly string[]
    /** Every header that carries it. */
    readonly headers: readonly string[]
    readonly sameOn: readonly string[]
  }
  readonly receiver: {
    /** How long a repeat may come after the first one when nothing is replayed, ms. */
    readonly repeatsWithinMs: number
    /** The same with one replay at the last moment, ms: remember keys for longer than this. */
    readonly dedupeWindowMs: number
    readonly why: readonly string[]
    readonly rules: readonly ReceiverRule[]
  }
}

/** `leadsTo`: what posthouse makes of the answer. */
export type ReceiverRule = { readonly when: string; readonly answer: string; readonly leadsTo: Consequence }

export function idempotencyOf(input: {
  readonly policy: Policy
  readonly scheme: SignatureScheme
  readonly expiryMs: number
  readonly deadLettersKeptMs: number
}): IdempotencyTerms {
  const { policy, expiryMs, deadLettersKeptMs } = input
  const repeatsWithinMs = expiryMs + policy.timeoutMs
  const dedupeWindowMs = 2 * repeatsWithinMs + deadLettersKeptMs
  return {
    key: {
      form: '`del_` and 32 letters and digits, the delivery id',
      madeOf: ['tenant', 'source (ce_source, else the topic)', 'event id', 'subscription id'],
      headers: headersWithKey(input.scheme),
      sameOn: ['every attempt', 'every replay', 'the same event produced or routed again'],
    },
    receiver: {
      repeatsWithinMs, dedupeWindowMs,
      why: [
        `A delivery may be sent until ${inWords(expiryMs)} after it was routed, and an answer that got lost is asked for again: a window of a day forgets the key before the last attempts.`,
        `A dead letter is kept for ${inWords(deadLettersKeptMs)}, and a replay of it has the same key and as long again: ${inWords(dedupeWindowMs)} for one replay. Each further replay of a delivery that fails again begins anew.`,
        'Events that are read and sent again by hand (`posthouse events replay`) have the key they had, however old they are.',
        'A receiver that forgets sooner must find repeats by what the event itself says.',
      ],
      rules: rulesFor(policy),
    },
  }
}

/** Asked of what signs requests. */
function headersWithKey(signatureScheme: SignatureScheme): readonly string[] {
  const id = 'del_of-the-contract'
  const secret = `whsec_${Buffer.from('only to see which headers there are').toString('base64')}`
  const headers = attemptHeaders({
    subscription: { signatureScheme, headers: [], secrets: [{ secret, createdAt: 0, expiresAt: null }] },
    delivery: { id, eventType: 'contract', body: Buffer.alloc(0) }, attempt: 1, sentAt: 0, version: '0', replay: 0,
  })
  return headers.filter((_, index) => headers[index + 1] === id)
}

function rulesFor(policy: Policy): readonly ReceiverRule[] {
  const rules = classificationOf(policy)
  const leadsTo = (status: number): Consequence =>
    rules.find((rule) => rule.on === 'status' && status >= rule.from && status <= rule.to)?.leadsTo ?? 'retry'
  return [
    { when: 'the key is new', answer: 'claim it, act, keep status and body under it, answer 2xx', leadsTo: leadsTo(200) },
    { when: 'a repeat of one that was answered', answer: 'the same status and body, with `Idempotent-Replayed: true`', leadsTo: leadsTo(200) },
    { when: 'a repeat of one that is still running', answer: '409 with the id of the first request, and `Retry-After`', leadsTo: leadsTo(409) },
    { when: 'the same key with another body', answer: '422', leadsTo: leadsTo(422) },
    { when: 'acting failed', answer: 'give the claim up, so that the next attempt acts, and answer 5xx', leadsTo: leadsTo(500) },
    { when: 'whoever held the claim has died', answer: 'take the claim over once its lock has passed, with a fencing token', leadsTo: leadsTo(200) },
  ]
}
