import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { noPolicy } from '../../shared/domain/policy.ts'
import type { Subscription } from '../../shared/domain/subscription.ts'
import { openSecret, sealSecret } from '../../shared/records/secret-envelope.ts'
import { decodeSubscription, encodeSubscription } from '../../shared/records/subscription-codec.ts'

const subscription: Subscription = {
  id: 'sub_abc', tenant: 'acme', url: 'https://hook.example/in', endpointKey: 'ep_abc', eventTypes: ['order.*'], state: 'active', signatureScheme: 'stripe',
  secrets: [{ secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3', createdAt: 1, expiresAt: null }], headers: [{ name: 'X-Key', value: 'token' }],
  policy: noPolicy, description: null, createdAt: 1, updatedAt: 2,
}

test('a secret comes back out of its envelope', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (secret) => {
    assert.equal(openSecret(sealSecret(secret, 'sub_a'), 'sub_a'), secret)
  }))
  assert.equal(sealSecret('s', 'sub_a')[0], 0, 'kind: plain')
})

test('an envelope of another kind is from a newer posthouse, an empty one is corrupt; neither error shows what is in it', () => {
  const sealed = Buffer.from('\u0001topsecret')
  assert.throws(() => openSecret(sealed, 'sub_a'), { kind: 'unknown_schema', message: /sub_a.*newer posthouse/ })
  assert.throws(() => openSecret(sealed, 'sub_a'), (error: Error) => !error.message.includes('topsecret'))
  assert.throws(() => openSecret(Buffer.alloc(0), 'sub_a'), { kind: 'unreadable' })
  assert.throws(() => openSecret(Buffer.from([0, 0x61, 0xff]), 'sub_a'), { kind: 'unreadable' })
  assert.throws(() => sealSecret('s', ''), /id is empty/)
})

test('a subscription with its secrets comes back as a plain object, without what a table adds', () => {
  const stored = { ...subscription, offset: 5, appendedAt: 9 }
  assert.deepEqual(decodeSubscription(encodeSubscription(stored)), subscription)
})

test('a subscription that this version does not understand is refused', () => {
  const newer: [string, Subscription][] = [
    ['state', { ...subscription, state: 'archived' as 'active' }], ['signature scheme', { ...subscription, signatureScheme: 'ed25519' as 'stripe' }],
    ['strategy', { ...subscription, policy: { ...noPolicy, strategy: 'linear' as 'standard' } }],
    ['jitter', { ...subscription, policy: { ...noPolicy, jitter: 'none' as 'full' } }],
    ['failure class', { ...subscription, policy: { ...noPolicy, statusClasses: [{ status: 404, failureClass: 'weird' as 'local' }] } }],
  ]
  for (const [field, one] of newer) {
    assert.throws(() => decodeSubscription(encodeSubscription(one)), { name: 'RecordError', kind: 'unknown_value', message: new RegExp(field) })
  }
  assert.throws(() => decodeSubscription(encodeSubscription({ ...subscription, secrets: [] })), { kind: 'unreadable' })
})
