import type { DeadLetter } from '../domain/delivery.ts'
import { encodeDeadLetter } from './dead-letter-codec.ts'

/** Room for the value beside key and headers in a record of Kafka's default limit (max.message.bytes 1,048,588). */
const defaultMaxBytes = 1_000_000

/** Each takes more away than the one before; what was taken is said in the record. The body is never touched. */
const steps: readonly { readonly said: string; readonly shorten: (deadLetter: DeadLetter) => DeadLetter }[] = [
  { said: 'excerpts', shorten: (one) => withAttempts(one, one.delivery.attempts.map((attempt) => ({ ...attempt, excerpt: null }))) },
  { said: 'excerpts, all attempts but the last', shorten: (one) => withAttempts(one, one.delivery.attempts.slice(-1).map((attempt) => ({ ...attempt, excerpt: null }))) },
  {
    said: 'excerpts, all attempts but the last, the subscription',
    shorten: (one) => ({ ...withAttempts(one, one.delivery.attempts.slice(-1).map((attempt) => ({ ...attempt, excerpt: null }))), subscription: null }),
  },
  {
    said: 'excerpts, all attempts but the last, the subscription, source headers',
    shorten: (one) => ({ ...one, subscription: null, delivery: { ...one.delivery, attempts: [], sourceHeaders: [] } }),
  },
]

/** Shortens a dead letter until its value takes at most `maxBytes`, excerpts first. */
export function fitDeadLetter(deadLetter: DeadLetter, maxBytes = defaultMaxBytes): DeadLetter {
  if (encodeDeadLetter(deadLetter).length <= maxBytes) return deadLetter
  let shortened = deadLetter
  for (const { said, shorten } of steps) {
    shortened = { ...shorten(deadLetter), shortened: said }
    if (encodeDeadLetter(shortened).length <= maxBytes) break
  }
  return shortened
}

const withAttempts = (deadLetter: DeadLetter, attempts: DeadLetter['delivery']['attempts']): DeadLetter =>
  ({ ...deadLetter, delivery: { ...deadLetter.delivery, attempts } })
