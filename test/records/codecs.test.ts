import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Attempt } from '../../shared/domain/delivery.ts'
import type { EndpointHealth } from '../../shared/domain/health.ts'
import { decodeAttempt, encodeAttempt } from '../../shared/records/attempt-codec.ts'
import { decodeDeadLetter, encodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import { decodeDelivery, encodeDelivery } from '../../shared/records/delivery-codec.ts'
import { decodeEndpointHealth, encodeEndpointHealth } from '../../shared/records/endpoint-health-codec.ts'
import { isRecordError } from '../../shared/records/record-error.ts'
import { decodeSubscription, encodeSubscription } from '../../shared/records/subscription-codec.ts'
import { anyAttempt, anyDeadLetter, anyDelivery, anyHealth, anySubscription, sampleDeadLetter, sampleDelivery } from './arbitraries.ts'

const [sampleAttempt] = fc.sample(anyAttempt, { numRuns: 1, seed: 1 }) as [Attempt]
const [sampleHealth] = fc.sample(anyHealth, { numRuns: 1, seed: 1 }) as [EndpointHealth]

const codecs = [
  { name: 'delivery', any: anyDelivery as fc.Arbitrary<unknown>, encode: encodeDelivery as (value: unknown) => Buffer, decode: decodeDelivery },
  { name: 'attempt', any: anyAttempt as fc.Arbitrary<unknown>, encode: encodeAttempt as (value: unknown) => Buffer, decode: decodeAttempt },
  { name: 'endpoint health', any: anyHealth as fc.Arbitrary<unknown>, encode: encodeEndpointHealth as (value: unknown) => Buffer, decode: decodeEndpointHealth },
  { name: 'subscription', any: anySubscription as fc.Arbitrary<unknown>, encode: encodeSubscription as (value: unknown) => Buffer, decode: decodeSubscription },
  { name: 'dead letter', any: anyDeadLetter as fc.Arbitrary<unknown>, encode: encodeDeadLetter as (value: unknown) => Buffer, decode: decodeDeadLetter },
]

for (const { name, any, encode, decode } of codecs) {
  test(`${name}: what is read is what was written`, () => {
    fc.assert(fc.property(any, (value) => {
      const bytes = encode(value)
      assert.equal(bytes.readUInt16BE(0), 0xc301)
      assert.deepEqual(comparable(decode(bytes)), comparable(value))
    }), { numRuns: 500 })
  })

  test(`${name}: no bytes give anything but a value or the typed error`, () => {
    const changed = fc.tuple(any, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 6 }), fc.nat(), fc.boolean())
    fc.assert(fc.property(changed, ([value, changes, cut, isCut]) => {
      let bytes = Buffer.from(encode(value))
      // Behind the header: a changed fingerprint is another test's.
      for (const [at, byte] of changes) bytes[10 + (at % (bytes.length - 10))] = byte
      if (isCut) bytes = bytes.subarray(0, cut % bytes.length)
      try {
        decode(bytes)
      } catch (error) {
        assert.ok(isRecordError(error), String(error))
        // Only a secret's envelope has a byte that may say "newer".
        assert.ok(error.kind !== 'unknown_schema' || name === 'subscription')
      }
    }), { numRuns: 1500 })
  })

  test(`${name}: every shorter and every longer value is unreadable`, () => {
    const [value] = fc.sample(any, { numRuns: 1, seed: 7 })
    const bytes = encode(value)
    for (let length = 0; length < bytes.length; length += 1) {
      assert.throws(() => decode(bytes.subarray(0, length)), { name: 'RecordError', kind: 'unreadable' }, `${length} of ${bytes.length} bytes`)
    }
    assert.throws(() => decode(Buffer.concat([bytes, Buffer.from([0])])), { name: 'RecordError', kind: 'unreadable', message: /1 bytes too many/ })
  })
}

/** fast-check's own records may have no prototype, its strings half surrogate pairs. */
function comparable(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Buffer.isBuffer(value)) return value.toString('hex')
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, comparable(one)]))
}

test('values are plain objects, inner ones too', () => {
  // deepEqual compares prototypes.
  assert.deepEqual(decodeDeadLetter(encodeDeadLetter(sampleDeadLetter)), sampleDeadLetter)
  assert.deepEqual(decodeDelivery(encodeDelivery(sampleDelivery)), sampleDelivery)
})

test('a body and source headers are read as views, and come back byte for byte', () => {
  const body = Buffer.from('{"score":0.0,"weight":136.0,"e":1E2,"z":-0,"n":-9007199254740993,"t":"🙄"}')
  const bytes = encodeDelivery({ ...sampleDelivery, body })
  const read = decodeDelivery(bytes)
  assert.ok(read.body.equals(body))
  assert.equal(read.body.buffer, bytes.buffer, 'no copy of the body')
  assert.deepEqual(read.sourceHeaders, sampleDelivery.sourceHeaders)
})

test('a delivery passes through hops as the same bytes', () => {
  const bytes = encodeDelivery(sampleDelivery)
  assert.ok(encodeDelivery(decodeDelivery(bytes)).equals(bytes))
})

test('a text that this version does not know is an error of its own kind', () => {
  const newer: [string, () => unknown][] = [
    ['failure class', () => decodeDelivery(encodeDelivery({ ...sampleDelivery, attempts: [{ ...sampleDelivery.attempts[0]!, failureClass: 'weird' as 'local' }] }))],
    ['reason', () => decodeDeadLetter(encodeDeadLetter({ ...sampleDeadLetter, reason: 'weird' as 'gone' }))],
    ['state', () => decodeDeadLetter(encodeDeadLetter({ ...sampleDeadLetter, state: 'success' as 'dlq' }))],
    ['state of an attempt', () => decodeAttempt(encodeAttempt({ ...sampleAttempt, state: 'weird' as 'dlq' }))],
    ['failure class of an attempt', () => decodeAttempt(encodeAttempt({ ...sampleAttempt, failureClass: 'weird' as 'local' }))],
    ['band', () => decodeEndpointHealth(encodeEndpointHealth({ ...sampleHealth, band: 'weird' as 'healthy' }))],
    ['inner', () => decodeDeadLetter(encodeDeadLetter({
      ...sampleDeadLetter, delivery: { ...sampleDelivery, attempts: [{ ...sampleDelivery.attempts[0]!, failureClass: '__proto__' as 'local' }] },
    }))],
  ]
  for (const [what, decode] of newer) assert.throws(decode, { name: 'RecordError', kind: 'unknown_value' }, what)
})

test('numbers that cannot be are unreadable', () => {
  const wrong = [
    { ...sampleDelivery, replay: -1 }, { ...sampleDelivery, attemptsMade: -1 }, { ...sampleDelivery, attempts: [{ ...sampleDelivery.attempts[0]!, attempt: 0 }] },
  ]
  for (const delivery of wrong) assert.throws(() => decodeDelivery(encodeDelivery(delivery)), { kind: 'unreadable' })
  for (const throttleRatePerSecond of [NaN, Infinity, -1]) {
    assert.throws(() => decodeEndpointHealth(encodeEndpointHealth({ ...sampleHealth, throttleRatePerSecond })), { kind: 'unreadable' })
  }
})

test('a record of another kind is unreadable, an unknown schema is not', () => {
  assert.throws(() => decodeAttempt(encodeDelivery(sampleDelivery)), { kind: 'unreadable', message: /of kind delivery/ })
  const bytes = Buffer.from(encodeDelivery(sampleDelivery))
  bytes.writeBigUInt64LE(0x0123456789abcdefn, 2)
  assert.throws(() => decodeDelivery(bytes), { kind: 'unknown_schema', message: /newer posthouse.*0123456789abcdef/ })
  // Confluent's wire format, as it will be written once a registry is configured.
  assert.throws(() => decodeDelivery(Buffer.from([0, 0, 0, 0, 1, 2])), { kind: 'unknown_schema', message: /schema registry/ })
  for (const short of [[], [0, 0], [0xc3], [0xc3, 0x01], [0x7b, 0x7d]]) {
    assert.throws(() => decodeDelivery(Buffer.from(short)), { kind: 'unreadable' }, String(short))
  }
})

test('half a surrogate pair is written as a replacement character, as every reader of Avro would have it', () => {
  assert.equal(decodeDelivery(encodeDelivery({ ...sampleDelivery, eventId: 'a\ud83d' })).eventId, 'a\ufffd')
  assert.equal(decodeDelivery(encodeDelivery({ ...sampleDelivery, eventId: 'a\ufffd' })).eventId, 'a\ufffd')
})

test('what is not a number the schema can hold exactly is not written', () => {
  for (const routedAt of [2 ** 53, 0.5, NaN, Infinity, '1' as unknown as number, null as unknown as number]) {
    assert.throws(() => encodeDelivery({ ...sampleDelivery, routedAt }), RangeError)
  }
})
