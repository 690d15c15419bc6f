import assert from 'node:assert/strict'
import { test } from 'node:test'
import { historyBounds, withAttempt } from '../../shared/domain/attempt-history.ts'
import type { Delivery, PastAttempt } from '../../shared/domain/delivery.ts'
import { maxBodyAndHeadersBytes, maxBodyBytes } from '../../shared/domain/event.ts'
import { sizeOfRecord } from '../../shared/kafka/produced-record.ts'
import { decodeDeadLetter, encodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import { fitDeadLetter } from '../../shared/records/dead-letter-fit.ts'
import { encodeDelivery } from '../../shared/records/delivery-codec.ts'
import { readEvent } from '../../shared/records/event-door.ts'
import { deadLetterHeaders } from '../../shared/records/record-headers.ts'
import { sampleDeadLetter, sampleDelivery } from './arbitraries.ts'

const past = sampleDelivery.attempts[0]!
const withDelivery = (changed: Partial<Delivery>) => ({ ...sampleDeadLetter, delivery: { ...sampleDelivery, ...changed } })
const history = (length: number, excerptBytes: number): PastAttempt[] =>
  Array.from({ length }, (_, index) => ({ ...past, attempt: index + 1, excerpt: 'x'.repeat(excerptBytes) }))

/** The largest that the door lets in and the history grows to. */
function largestDelivery(): Delivery {
  const body = Buffer.from(`{"id":"${'é'.repeat(1024)}","type":"t","x":"`.padEnd(maxBodyBytes - 1026, 'x') + '"}')
  const room = maxBodyAndHeadersBytes - body.length - 200
  const headers = [...Array.from({ length: 1000 }, () => ({ name: '', value: Buffer.alloc(0) })), { name: 'h', value: Buffer.alloc(room / 2 - 10_000) }]
  const record = { topic: 't'.repeat(249), partition: 0, offset: 0, timestamp: 0, key: Buffer.alloc(Math.floor(room / 2) - 500), value: body, headers }
  const door = readEvent(record, { idField: 'id', tenantField: 'tenant', type: { kind: 'field', name: 'type' } })
  assert.equal(door.kind, 'event', JSON.stringify(door).slice(0, 300))
  const { event } = door
  let attempts: PastAttempt[] = []
  for (let i = 0; i < 30; i += 1) attempts = withAttempt(attempts, { ...past, attempt: i + 1, excerpt: '中'.repeat(historyBounds.excerptBytes) })
  return { ...sampleDelivery, eventId: event.id, body: event.body, sourceKey: event.sourceKey, sourceHeaders: event.sourceHeaders, origin: event.origin, attempts }
}

test('what the door lets in always fits, as a delivery and as a dead letter, whole', () => {
  const delivery = largestDelivery()
  assert.ok(encodeDelivery(delivery).length < 1_000_000)
  const fitted = fitDeadLetter({ ...sampleDeadLetter, delivery })
  assert.equal(fitted.shortened, null)
  assert.ok(encodeDeadLetter(fitted).length <= 1_000_000)
})

test('what fits is left alone', () => {
  assert.equal(fitDeadLetter(sampleDeadLetter), sampleDeadLetter)
})

test('excerpts go first, then the history, the subscription, and only then what the source brought along', () => {
  const body = Buffer.alloc(maxBodyBytes, 'x')
  const headers = (bytes: number) => [{ name: 'h', value: Buffer.alloc(bytes) }]
  const wide = { ...sampleDeadLetter.subscription!, eventTypes: ['t'.repeat(400_000)] }
  const cases = [
    { deadLetter: withDelivery({ body, attempts: history(8, 64 * 1024) }), said: 'excerpts cut' },
    { deadLetter: withDelivery({ body, attempts: history(8, 64 * 1024), sourceHeaders: headers(454_500) }), said: 'excerpts cut, no excerpts' },
    { deadLetter: withDelivery({ body, attempts: history(5000, 64), sourceHeaders: headers(400_000) }), said: 'excerpts cut, no excerpts, last attempt only' },
    { deadLetter: { ...withDelivery({ body, sourceHeaders: headers(100_000) }), subscription: wide }, said: 'excerpts cut, no excerpts, last attempt only, no subscription' },
    { deadLetter: withDelivery({ body, sourceHeaders: headers(600_000) }), said: 'excerpts cut, no excerpts, last attempt only, no subscription, no source headers' },
    {
      deadLetter: withDelivery({ body, sourceHeaders: headers(600_000), sourceKey: Buffer.alloc(600_000) }),
      said: 'excerpts cut, no excerpts, last attempt only, no subscription, no source headers, no source key',
    },
  ]
  for (const { deadLetter, said } of cases) {
    const fitted = fitDeadLetter(deadLetter)
    assert.equal(fitted.shortened, said)
    const bytes = encodeDeadLetter(fitted)
    assert.ok(bytes.length <= 1_000_000)
    const read = decodeDeadLetter(bytes)
    assert.ok(read.delivery.body.equals(body), 'the body is whole')
    assert.equal(read.shortened, said)
    assert.equal(read.delivery.id, sampleDelivery.id)
    assert.ok(read.delivery.attempts.length >= 1, 'the last attempt stays')
  }
})

test('what fits by itself also fits with its key and headers into what the producer takes', () => {
  const ids = { eventId: '中'.repeat(1024), tenant: '中'.repeat(256), eventType: 't'.repeat(256), origin: { ...sampleDelivery.origin, topic: 't'.repeat(249) } }
  const description = (length: number) => ({ ...sampleDeadLetter.subscription!, description: 'd'.repeat(length) })
  const bare = encodeDeadLetter({ ...withDelivery({ ...ids, body: Buffer.alloc(maxBodyBytes, 'x') }), subscription: description(0) }).length
  for (const size of [979_900, 980_100, 999_900]) {
    const fitted = fitDeadLetter({ ...withDelivery({ ...ids, body: Buffer.alloc(maxBodyBytes, 'x') }), subscription: description(size - bare) })
    const record = { topic: 'dlq', key: `${fitted.delivery.id}.${fitted.delivery.replay}`, value: encodeDeadLetter(fitted), headers: deadLetterHeaders(fitted) }
    assert.ok(sizeOfRecord(record) <= 1_000_000, `${sizeOfRecord(record)} bytes`)
  }
})

test('a cut excerpt ends with a whole character', () => {
  const fitted = fitDeadLetter(withDelivery({ attempts: [{ ...past, excerpt: '中'.repeat(1000) }] }), 1000)
  assert.equal(fitted.delivery.attempts[0]!.excerpt, '中'.repeat(42))
})
