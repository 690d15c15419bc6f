import type { DeadLetter, RecordHeader } from '../domain/delivery.ts'
import { matches } from '../domain/matching.ts'
import { lastValue } from '../records/record-headers.ts'
import { deadLetterKey, parseDeadLetterKey, type DeadLetterId } from './key.ts'

/** What a dead letter is chosen by. Also known of one that only a newer posthouse can read, from its headers. */
export type DeadLetterFacts = DeadLetterId & {
  readonly eventId: string | null
  readonly eventType: string | null
  readonly subscriptionId: string | null
  readonly tenant: string | null
  readonly endpointKey: string | null
  readonly reason: string | null
  readonly attemptsMade: number
  readonly lastStatus: number | null
  readonly lastError: string | null
  /** Epoch ms. */
  readonly diedAt: number
}

/** Every part that is there must hold. */
export type DeadLetterFilter = {
  /** Delivery ids, which stand for all dead letters of that delivery, or keys: `<delivery id>.<replay>`. */
  readonly ids?: readonly string[]
  readonly endpointKey?: string
  readonly subscriptionId?: string
  readonly tenant?: string
  readonly eventId?: string
  /** An exact type, `prefix.*` or `*`. */
  readonly eventType?: string
  readonly reason?: string
  /** HTTP status of the last attempt. */
  readonly status?: number
  /** Short code of the last failure, such as `connect_refused`. */
  readonly error?: string
  /** When it died, epoch ms: from here on, and before. */
  readonly since?: number
  readonly until?: number
}

/** Whether a filter lets everything through. */
export const isEverything = (filter: DeadLetterFilter): boolean => Object.values(filter).every((value) => value === undefined)

export function createMatcher(filter: DeadLetterFilter): (facts: DeadLetterFacts) => boolean {
  const { endpointKey, subscriptionId, tenant, eventId, eventType, reason, status, error, since, until } = filter
  const isNamed = createKeyMatcher(filter)
  return (facts) =>
    isNamed(deadLetterKey(facts)) &&
    (endpointKey === undefined || facts.endpointKey === endpointKey) &&
    (subscriptionId === undefined || facts.subscriptionId === subscriptionId) &&
    (tenant === undefined || facts.tenant === tenant) &&
    (eventId === undefined || facts.eventId === eventId) &&
    (eventType === undefined || (facts.eventType !== null && matches(eventType, facts.eventType))) &&
    (reason === undefined || facts.reason === reason) &&
    (status === undefined || facts.lastStatus === status) &&
    (error === undefined || facts.lastError === error) &&
    (since === undefined || facts.diedAt >= since) &&
    (until === undefined || facts.diedAt < until)
}

/** The part of a filter that a record's key answers. */
export function createKeyMatcher({ ids }: DeadLetterFilter): (key: string) => boolean {
  if (ids === undefined) return () => true
  const named = new Set(ids)
  return (key) => named.has(key) || named.has(parseDeadLetterKey(key)?.deliveryId ?? '')
}

export function factsOf({ delivery, reason, endpointKey, lastStatus, lastError, diedAt }: DeadLetter): DeadLetterFacts {
  const { id: deliveryId, replay, eventId, eventType, subscriptionId, tenant, attemptsMade } = delivery
  return { deliveryId, replay, eventId, eventType, subscriptionId, tenant, endpointKey, reason, attemptsMade, lastStatus, lastError, diedAt }
}

const numberForm = /^\d{1,9}$/

/** From a record's text headers, where its value cannot be read. `writtenAt`: epoch ms. */
export function factsFromHeaders(id: DeadLetterId, headers: readonly RecordHeader[], writtenAt: number): DeadLetterFacts {
  const text = (name: string): string | null => lastValue(headers, `posthouse-${name}`)
  const number = (name: string): number | null => {
    const value = text(name)
    return value !== null && numberForm.test(value) ? Number(value) : null
  }
  return {
    ...id, eventId: text('event'), eventType: text('type'), subscriptionId: text('subscription'), tenant: text('tenant'),
    endpointKey: text('endpoint'), reason: text('reason'), attemptsMade: number('attempts') ?? 0, lastStatus: number('status'),
    lastError: text('error'), diedAt: writtenAt,
  }
}
