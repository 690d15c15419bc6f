import { cutUtf8 } from '../domain/attempt-history.ts'
import type { DeadLetter, Delivery } from '../domain/delivery.ts'
import { encodeDeadLetter } from './dead-letter-codec.ts'

/** Leaves room for key and headers in the 1,000,000 bytes that the producer takes: a record it refuses would be tried again for ever. */
const defaultMaxBytes = 980_000
const shortExcerptBytes = 128

type Step = { readonly said: string; readonly shorten: (deadLetter: DeadLetter) => DeadLetter }

/** Taken one after another until it fits; what was taken is said in the record. Never the body: what replay sends must be whole. */
const steps: readonly Step[] = [
  { said: 'excerpts cut', shorten: (one) => withExcerpts(one, (excerpt) => cutUtf8(excerpt, shortExcerptBytes)) },
  { said: 'no excerpts', shorten: (one) => withExcerpts(one, () => null) },
  { said: 'last attempt only', shorten: (one) => withDelivery(one, { attempts: one.delivery.attempts.slice(-1) }) },
  { said: 'no subscription', shorten: (one) => ({ ...one, subscription: null }) },
  { said: 'no source headers', shorten: (one) => withDelivery(one, { sourceHeaders: [] }) },
  { said: 'no source key', shorten: (one) => withDelivery(one, { sourceKey: null }) },
]

/**
 * Shortens a dead letter until its value takes at most `maxBytes`: excerpts first, then the history, the subscription, and only at
 * last what the source record brought along. Within the limits of the door (512 KiB of body, 640 KiB with key and headers) the
 * source headers are always kept.
 */
export function fitDeadLetter(deadLetter: DeadLetter, maxBytes = defaultMaxBytes): DeadLetter {
  let fitted = deadLetter
  const said: string[] = []
  for (const step of steps) {
    if (encodeDeadLetter(fitted).length <= maxBytes) return fitted
    said.push(step.said)
    fitted = { ...step.shorten(fitted), shortened: said.join(', ') }
  }
  return fitted
}

/**
 * Whether what is to be sent is whole in a dead letter of which this was left out: nothing that is left out here is sent. What a
 * newer posthouse may leave out besides is not known to be so.
 */
export function keepsRequest(shortened: string | null): boolean {
  return shortened === null || shortened.split(', ').every((part) => steps.some(({ said }) => said === part))
}

function withDelivery(deadLetter: DeadLetter, changed: Partial<Delivery>): DeadLetter {
  return { ...deadLetter, delivery: { ...deadLetter.delivery, ...changed } }
}

function withExcerpts(deadLetter: DeadLetter, shorten: (excerpt: string) => string | null): DeadLetter {
  const attempts = deadLetter.delivery.attempts.map((attempt) => (
    attempt.excerpt === null ? attempt : { ...attempt, excerpt: shorten(attempt.excerpt) }
  ))
  return withDelivery(deadLetter, { attempts })
}
