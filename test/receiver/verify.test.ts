import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { verify, type Verification, type VerifyOptions } from '../../receiver/verify.ts'
import { attemptHeaders } from '../../shared/domain/signed-headers.ts'

const { webhooks } = new Stripe('sk_test_unused')
const now = 1_700_000_000_000
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const otherSecret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'

/** Signed by Stripe's own library. */
const stripeHeaders = (body: string, by = secret, at = now): Record<string, string> => ({
  'x-webhook-signature': webhooks.generateTestHeaderString({ payload: body, secret: by, timestamp: Math.floor(at / 1000) }),
  'x-webhook-delivery': 'del_1',
})

/** Signed by the library of Standard Webhooks. */
const standardHeaders = (body: string, by = secret, at = now, id = 'del_1'): Record<string, string> => ({
  'webhook-id': id, 'webhook-timestamp': String(Math.floor(at / 1000)), 'webhook-signature': new Webhook(by).sign(id, new Date(at), body),
})

const check = (headers: Record<string, string | string[] | undefined> | Headers, body: string | Uint8Array, options: Partial<VerifyOptions> = {}): Verification => (
  verify({ headers, body }, { secrets: secret, now, ...options })
)

function assertRefused(verification: Verification, reason: string, hint = ''): void {
  assert.equal(verification.ok, false, hint)
  assert.equal(verification.reason, reason, hint)
  assert.ok(verification.message.length > 20)
  for (const text of [secret, otherSecret]) assert.ok(!verification.message.includes(text.slice(6)), 'a message holds no secret')
}

test("what Stripe's and Standard Webhooks' own libraries sign is accepted, and with one byte changed it is not", () => {
  fc.assert(fc.property(fc.json(), fc.nat(), fc.constantFrom(stripeHeaders, standardHeaders), (body, place, sign) => {
    const headers = sign(body)
    const verification = check(headers, body)
    assert.ok(verification.ok)
    assert.deepEqual([verification.id, verification.sentAt], ['del_1', now])
    assert.equal(verification.isIdSigned, verification.scheme === 'standard')

    const bytes = Buffer.from(body)
    assert.ok(check(headers, bytes).ok, 'bytes as well as text')
    bytes[place % bytes.length]! ^= 1
    assertRefused(check(headers, bytes), 'signature-mismatch')
    assertRefused(check(headers, body, { secrets: otherSecret }), 'signature-mismatch')
    assert.ok(check(headers, body, { secrets: [otherSecret, secret] }).ok, 'any of several secrets')
  }), { numRuns: 100 })
})

test('what posthouse sends is accepted in both schemes, while secrets overlap by those who have the new or the old one', () => {
  const secrets = [{ secret, createdAt: 2, expiresAt: null }, { secret: otherSecret, createdAt: 1, expiresAt: now + 1 }]
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom('stripe' as const, 'standard' as const), (bytes, signatureScheme) => {
    const flat = attemptHeaders({
      subscription: { signatureScheme, secrets, headers: [] }, delivery: { id: 'del_1', eventType: 'order.paid', body: Buffer.from(bytes) },
      attempt: 1, sentAt: now, version: '1.2.3', replay: 0,
    })
    const headers = Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, n) => [flat[2 * n]!, flat[2 * n + 1]!]))
    for (const known of [secret, otherSecret]) {
      const verification = check(headers, bytes, { secrets: known })
      assert.deepEqual(verification, { ok: true, scheme: signatureScheme, id: 'del_1', isIdSigned: signatureScheme === 'standard', sentAt: now })
      assert.ok(check(new Headers(headers), bytes, { secrets: known }).ok, "Fetch's headers too")
    }
  }), { numRuns: 50 })
})

test('the vectors that others publish', () => {
  const standard = { 'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek', 'webhook-timestamp': '1614265330', 'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' }
  assert.ok(check(standard, '{"test": 2432232314}', { now: 1_614_265_330_000 }).ok)
  const body = JSON.stringify({ id: 'evt_test_webhook', object: 'event' }, null, 2)
  const stripe = { 'x-webhook-signature': 't=1614265330,v1=af4ead0627a34a8cca29808e8de9ada8e41a92e6237c63cef6eacf51d36cca34' }
  assert.ok(check(stripe, body, { secrets: 'whsec_test_secret', now: 1_614_265_330_000 }).ok)
  // Signs "<t>,<body>" with a comma.
  const convoy = { 'x-webhook-signature': 't=1700000000,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c' }
  assertRefused(check(convoy, '{"event":"charge.success","amount":1000,"currency":"NGN"}', { secrets: 'convoy-webhook-secret' }), 'signature-mismatch')
})

test('a time that is off by more than the tolerance is refused, on either side', () => {
  for (const sign of [stripeHeaders, standardHeaders]) {
    const headers = sign('{}')
    assert.ok(check(headers, '{}', { now: now + 300_000 }).ok)
    assert.ok(check(headers, '{}', { now: now - 300_000 }).ok)
    assertRefused(check(headers, '{}', { now: now + 301_000 }), 'timestamp-too-old')
    assertRefused(check(headers, '{}', { now: now - 301_000 }), 'timestamp-too-new')
    assertRefused(check(headers, '{}', { now: now + 11_000, tolerance: '10s' }), 'timestamp-too-old')
    assert.ok(check(headers, '{}', { now: now + 11_000, tolerance: 11_000 }).ok, 'a number is ms')
    assert.ok(check(headers, '{}', { now: 0, tolerance: Infinity }).ok)
    assertRefused(check(headers, '{ }', { now: now + 301_000 }), 'signature-mismatch', 'a time nobody signed is not spoken of')
  }
})

test('the id of Standard Webhooks is signed, and cannot be stretched over the time', () => {
  assertRefused(check({ ...standardHeaders('{}'), 'webhook-id': 'del_2' }, '{}'), 'signature-mismatch')
  const shifted = { ...standardHeaders('1700000001.{}'), 'webhook-id': 'del_1.1700000000', 'webhook-timestamp': '1700000001' }
  assertRefused(check(shifted, '{}'), 'id-malformed')
  for (const id of ['', 'a b', 'é', 'x'.repeat(256), 'a\u0000']) assertRefused(check({ ...standardHeaders('{}'), 'webhook-id': id }, '{}'), 'id-malformed', id)
})

test('each thing that is missing or malformed has its reason', () => {
  const stripe = stripeHeaders('{}')
  const [time, signature] = stripe['x-webhook-signature']!.split(',') as [string, string]
  const { 'webhook-id': _, ...withoutId } = standardHeaders('{}')
  const cases: [Record<string, string | string[] | undefined>, string][] = [
    [{}, 'signature-missing'],
    [{ ...stripe, 'x-webhook-signature': '' }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': signature }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': time }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `${time},${time},${signature}` }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': [stripe['x-webhook-signature']!, stripe['x-webhook-signature']!] }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `t=1e9,${signature}` }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `t=-1,${signature}` }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `${time},v0=${signature.slice(3)}` }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `${time},${signature.toUpperCase()}` }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `${time},${signature.slice(0, -2)}` }, 'signature-malformed'],
    [{ ...stripe, 'x-webhook-signature': `${time},v1=${'0'.repeat(64)}` }, 'signature-mismatch'],
    [{ ...stripe, 'x-webhook-delivery': 'a b' }, 'id-malformed'],
    [withoutId, 'id-missing'],
    [{ ...standardHeaders('{}'), 'webhook-timestamp': undefined }, 'timestamp-malformed'],
    [{ ...standardHeaders('{}'), 'webhook-timestamp': '17e8' }, 'timestamp-malformed'],
    [{ ...standardHeaders('{}'), 'webhook-signature': 'v1a,x' }, 'signature-malformed'],
    [{ ...standardHeaders('{}'), 'webhook-signature': standardHeaders('{}')['webhook-signature']!.slice(0, -1) }, 'signature-malformed'],
    [{ ...standardHeaders('{}'), 'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}` }, 'signature-mismatch'],
  ]
  for (const [headers, reason] of cases) assertRefused(check(headers, '{}'), reason, JSON.stringify(headers))
  assert.ok(check({ ...stripe, 'x-webhook-signature': `${time}, v1=${'0'.repeat(64)},v9=x, ${signature}` }, '{}').ok, 'any of several signatures')
  assert.ok(check({ 'X-Webhook-Signature': stripe['x-webhook-signature']! }, '{}').ok, 'names in any case, and an id is not a must')
})

test('only the scheme that was asked for is accepted', () => {
  assertRefused(check(standardHeaders('{}'), '{}', { scheme: 'stripe' }), 'signature-missing')
  assertRefused(check(stripeHeaders('{}'), '{}', { scheme: 'standard' }), 'signature-missing')
  const both = { ...stripeHeaders('{}'), ...standardHeaders('{}', otherSecret) }
  assertRefused(check(both, '{}'), 'signature-mismatch', 'the scheme that signs the id goes first')
  assert.ok(check(both, '{}', { scheme: 'stripe' }).ok)
  assertRefused(check(standardHeaders('{}'), '{}', { secrets: 'plain text' }), 'secret-unusable')
  assertRefused(check(standardHeaders('{}'), '{}', { secrets: 'whsec_' }), 'secret-unusable')
})

test('a call that cannot be meant throws', () => {
  for (const secrets of ['', [], [''], [secret, ''], undefined, null, 5]) {
    assert.throws(() => check({}, '{}', { secrets: secrets as string }), { name: 'TypeError', message: /secret/ })
  }
  assert.throws(() => check(stripeHeaders('{}'), {} as string), { name: 'TypeError', message: /parsers of JSON/ })
  for (const tolerance of [0, -1, NaN, '5 minutes', '', '-1s', undefined]) {
    if (tolerance !== undefined) assert.throws(() => check({}, '{}', { tolerance: tolerance as number }), { name: 'RangeError', message: /tolerance/ })
  }
})

test('nothing that can be sent makes it throw', () => {
  const header = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('t=1700000000,v1=', 'v1,', 't=,v1', '=', ',', `t=1700000000,v1=${'0'.repeat(64)}`))
  const names = ['x-webhook-signature', 'x-webhook-delivery', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
  fc.assert(fc.property(fc.dictionary(fc.constantFrom(...names), header), fc.uint8Array(), (headers, body) => {
    assert.equal(check(headers, body).ok, false)
  }))
})
