import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkSignature } from '../../cli/signature-check.ts'
import { newSecret } from '../../shared/domain/ids.ts'
import { attemptHeaders } from '../../shared/domain/signed-headers.ts'
import type { SignatureScheme } from '../../shared/domain/subscription.ts'

function signed(signatureScheme: SignatureScheme, secrets: readonly string[], body: Buffer, sentAt: number): Record<string, string> {
  const flat = attemptHeaders({
    subscription: {
      signatureScheme, headers: [], secrets: secrets.map((secret, index) => ({ secret, createdAt: index, expiresAt: null })),
    },
    delivery: { id: 'del_a', eventType: 'order.created', body }, attempt: 1, sentAt, version: '1', replay: 0,
  })
  return Object.fromEntries(Array.from(
    { length: flat.length / 2 }, (_, index) => [flat[index * 2]!.toLowerCase(), flat[index * 2 + 1]!],
  ))
}

test('what posthouse signs is verified, by any of its secrets, and no other', () => {
  fc.assert(fc.property(fc.uint8Array(), fc.constantFrom('stripe' as const, 'standard' as const), (bytes, scheme) => {
    const [older, newer, other] = [newSecret(), newSecret(), newSecret()]
    const body = Buffer.from(bytes)
    const now = 1_800_000_000_000
    const headers = signed(scheme, [older, newer], body, now)
    for (const secrets of [[older], [newer], [other, older]]) assert.equal(checkSignature(headers, body, secrets, now), 'verified')
    assert.equal(checkSignature(headers, body, [other], now), 'wrong')
    assert.equal(checkSignature(headers, Buffer.concat([body, Buffer.from(' ')]), [older], now), 'wrong')
    assert.equal(checkSignature(headers, body, [older], now + 300_000), 'verified')
    assert.equal(checkSignature(headers, body, [older], now + 302_000), 'stale')
    assert.equal(checkSignature(headers, body, [older], now - 302_000), 'stale')
    assert.equal(checkSignature(headers, body, [], now), 'unchecked')
  }), { numRuns: 50 })
})

test('no signature is missing, and a broken one wrong', () => {
  const secret = newSecret()
  assert.equal(checkSignature({}, Buffer.alloc(0), [secret], 0), 'missing')
  assert.equal(checkSignature({ 'webhook-id': 'x' }, Buffer.alloc(0), [secret], 0), 'missing')
  for (const text of ['', 't=1', 'v1=00', 't=1,v1=,v1=zz', 'v1']) {
    assert.equal(checkSignature({ 'x-webhook-signature': text }, Buffer.alloc(0), [secret], 1_000), 'wrong', text)
  }
  const standard = { 'webhook-id': 'x', 'webhook-timestamp': '1', 'webhook-signature': 'v1,abc v2,def' }
  assert.equal(checkSignature(standard, Buffer.alloc(0), ['not-a-standard-secret', secret], 1_000), 'wrong')
})
