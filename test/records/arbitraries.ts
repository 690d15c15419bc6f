import fc from 'fast-check'
import { failureClasses } from '../../shared/domain/classify.ts'
import { deadLetterReasons, type Attempt, type DeadLetter, type Delivery, type PastAttempt } from '../../shared/domain/delivery.ts'
import { healthBands, type EndpointHealth } from '../../shared/domain/health.ts'
import { jitterKinds } from '../../shared/domain/policy.ts'
import { signatureSchemes, subscriptionStates, type Subscription } from '../../shared/domain/subscription.ts'

export const text = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: 'binary', maxLength: 100 }), fc.string({ unit: 'grapheme', maxLength: 40 }))
const time = fc.oneof(fc.integer({ min: 0, max: 2 ** 41 }), fc.maxSafeNat(), fc.constantFrom(Number.MAX_SAFE_INTEGER, 2 ** 52, 2 ** 52 - 1))
const count = fc.nat({ max: 2 ** 31 - 1 })
export const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })

const pastAttempt: fc.Arbitrary<PastAttempt> = fc.record({
  attempt: fc.integer({ min: 1, max: 2 ** 31 - 1 }), startedAt: time, durationMs: time, status: nullable(count),
  failureClass: fc.constantFrom(...failureClasses), error: text, excerpt: nullable(text),
})

export const anyDelivery: fc.Arbitrary<Delivery> = fc.record({
  id: text, replay: count, subscriptionId: text, tenant: nullable(text), eventId: text, eventType: text, routedAt: time,
  origin: fc.record({ topic: text, partition: count, offset: time, timestamp: fc.maxSafeInteger() }),
  sourceKey: nullable(bytes), sourceHeaders: fc.array(fc.record({ name: text, value: bytes }), { maxLength: 5 }), body: bytes,
  attemptsMade: count, lastWaitMs: time, attempts: fc.array(pastAttempt, { maxLength: 5 }),
})

export const anyAttempt: fc.Arbitrary<Attempt> = fc.record({
  deliveryId: text, replay: count, attempt: count, subscriptionId: text, endpointKey: text, tenant: nullable(text), eventId: text, eventType: text,
  startedAt: time, durationMs: time, status: nullable(count), failureClass: nullable(fc.constantFrom(...failureClasses)), error: nullable(text),
  excerpt: nullable(text), state: fc.constantFrom('waiting', 'success', 'permanent_failure', 'dlq', 'cancelled', 'expired'), reason: nullable(text),
  nextDueAt: nullable(time),
})

export const anyHealth: fc.Arbitrary<EndpointHealth> = fc.record({
  endpointKey: text, attempts: bytes, band: fc.constantFrom(...healthBands), throttledUntil: nullable(time),
  throttleRatePerSecond: nullable(fc.double({ min: 0, max: 1e6, noNaN: true })), goneAt: nullable(time), goneWrittenAt: nullable(time),
  lastError: nullable(text), lastStatus: nullable(count), updatedAt: time,
})

export const anySubscription: fc.Arbitrary<Subscription> = fc.record({
  id: text.map((one) => `sub_${one}`), tenant: nullable(text), url: text, endpointKey: text, eventTypes: fc.array(text, { maxLength: 5 }),
  state: fc.constantFrom(...subscriptionStates), signatureScheme: fc.constantFrom(...signatureSchemes),
  secrets: fc.array(fc.record({ secret: text, createdAt: time, expiresAt: nullable(time) }), { minLength: 1, maxLength: 3 }),
  headers: fc.array(fc.record({ name: text, value: text }), { maxLength: 3 }),
  policy: fc.record({
    strategy: nullable(fc.constantFrom('standard', 'exponential')), scheduleMs: nullable(fc.array(time, { maxLength: 8 })), baseMs: nullable(time),
    maxMs: nullable(time), maxAttempts: nullable(count), adaptive: nullable(fc.boolean()), jitter: nullable(fc.constantFrom(...jitterKinds)),
    timeoutMs: nullable(time), statusClasses: fc.array(fc.record({ status: count, failureClass: fc.constantFrom(...failureClasses) }), { maxLength: 3 }),
  }),
  description: nullable(text), createdAt: time, updatedAt: time,
})

export const anyDeadLetter: fc.Arbitrary<DeadLetter> = fc.record({
  delivery: anyDelivery, state: fc.constantFrom('permanent_failure', 'dlq', 'expired'), reason: fc.constantFrom(...deadLetterReasons), diedAt: time,
  endpointKey: text, lastStatus: nullable(count), lastError: nullable(text),
  subscription: nullable(fc.record({
    host: text, eventTypes: fc.array(text, { maxLength: 3 }), state: text, signatureScheme: text, headerNames: fc.array(text, { maxLength: 3 }),
    description: nullable(text),
  })),
  shortened: nullable(text),
})

export const sampleDelivery: Delivery = {
  id: 'del_abc', replay: 0, subscriptionId: 'sub_abc', tenant: null, eventId: 'evt_1', eventType: 'order.created', routedAt: 1_700_000_000_000,
  origin: { topic: 'webhooks.events', partition: 3, offset: 42, timestamp: 1_699_999_999_000 }, sourceKey: Buffer.from('k'),
  sourceHeaders: [{ name: 'traceparent', value: Buffer.from('00-1') }, { name: 'x', value: Buffer.from([0x00, 0xff]) }],
  body: Buffer.from('{"id":"evt_1"}'), attemptsMade: 1, lastWaitMs: 60_000,
  attempts: [{ attempt: 1, startedAt: 1_700_000_000_100, durationMs: 12, status: 503, failureClass: 'retriable', error: 'http_503', excerpt: 'down' }],
}

export const sampleDeadLetter: DeadLetter = {
  delivery: sampleDelivery, state: 'dlq', reason: 'exhausted', diedAt: 1_700_000_100_000, endpointKey: 'ep_abc', lastStatus: 503, lastError: 'http_503',
  subscription: { host: 'hook.example', eventTypes: ['order.*'], state: 'active', signatureScheme: 'stripe', headerNames: ['X-Key'], description: null },
  shortened: null,
}
