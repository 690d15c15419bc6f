import type { DeadLetter, PastAttempt } from '../domain/delivery.ts'
import { deadLetterKey } from './key.ts'
import type { FoundDeadLetter } from './scan.ts'

const iso = (at: number): string => new Date(at).toISOString()

/** A dead letter's main facts as JSON; times in ISO. Of one that cannot be read what its headers say, and `unreadable` says why. */
export type DeadLetterView = {
  readonly key: string
  readonly deliveryId: string
  readonly replay: number
  readonly standing: FoundDeadLetter['standing']['kind']
  readonly reason: string | null
  readonly status: number | null
  readonly error: string | null
  readonly attempts: number
  readonly eventId: string | null
  readonly eventType: string | null
  readonly tenant: string | null
  readonly subscriptionId: string | null
  readonly endpointKey: string | null
  readonly host: string | null
  readonly diedAt: string
  readonly unreadable: string | null
  readonly partition: number
  readonly offset: number
}

export function viewOfDeadLetter({ id, standing, facts, content, partition, offset }: FoundDeadLetter): DeadLetterView {
  return {
    key: deadLetterKey(id), ...id, standing: standing.kind,
    reason: facts.reason, status: facts.lastStatus, error: facts.lastError, attempts: facts.attemptsMade,
    eventId: facts.eventId, eventType: facts.eventType, tenant: facts.tenant, subscriptionId: facts.subscriptionId, endpointKey: facts.endpointKey,
    host: content.kind === 'readable' ? (content.deadLetter.subscription?.host ?? null) : null,
    diedAt: iso(facts.diedAt), unreadable: content.kind === 'readable' ? null : content.detail, partition, offset,
  }
}

/** Bytes as JSON can hold them without changing one: text where they are UTF-8, else base64. */
export type BytesView = { readonly text: string } | { readonly base64: string }

/** Everything that is kept of a delivery that could not be made; null where it cannot be read. */
export type DeadLetterStory = DeadLetterView & {
  readonly state: string
  readonly routedAt: string
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: number; readonly timestamp: string }
  readonly sourceKey: BytesView | null
  readonly sourceHeaders: readonly ({ readonly name: string } & BytesView)[]
  readonly body: BytesView & { readonly bytes: number }
  /** Oldest first; may be fewer than were made. */
  readonly history: readonly (Omit<PastAttempt, 'startedAt'> & { readonly startedAt: string })[]
  readonly subscription: DeadLetter['subscription']
  readonly shortened: string | null
}

export function storyOf(letter: FoundDeadLetter): DeadLetterStory | null {
  if (letter.content.kind !== 'readable') return null
  const { delivery, state, subscription, shortened } = letter.content.deadLetter
  const { origin, sourceKey, sourceHeaders, body } = delivery
  return {
    ...viewOfDeadLetter(letter), state, routedAt: iso(delivery.routedAt), origin: { ...origin, timestamp: iso(origin.timestamp) },
    sourceKey: sourceKey && bytesView(sourceKey), sourceHeaders: sourceHeaders.map(({ name, value }) => ({ name, ...bytesView(value) })),
    body: { bytes: body.length, ...bytesView(body) },
    history: delivery.attempts.map((attempt) => ({ ...attempt, startedAt: iso(attempt.startedAt) })),
    subscription, shortened,
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function bytesView(bytes: Uint8Array): BytesView {
  try {
    return { text: utf8.decode(bytes) }
  } catch {
    // TextDecoder has no other way to say that it is no UTF-8.
    return { base64: Buffer.from(bytes).toString('base64') }
  }
}
