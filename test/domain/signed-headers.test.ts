import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { checkCustomHeader } from '../../shared/domain/custom-headers.ts'
import { checkSecret } from '../../shared/domain/secrets.ts'
import { activeSecrets, attemptHeaders, type AttemptHeaderInput } from '../../shared/domain/signed-headers.ts'
import type { SigningSecret } from '../../shared/domain/subscription.ts'

const { signature: stripeSignature } = new Stripe('sk_test_unused').webhooks
assert.ok(stripeSignature !== null)
const secret = (text: string, createdAt = 1, expiresAt: number | null = null): SigningSecret => ({ secret: text, createdAt, expiresAt })
const standardKey = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

type Fields = Partial<Omit<AttemptHeaderInput, 'subscription' | 'delivery'>> & Partial<AttemptHeaderInput['subscription']> & { body?: string | Buffer; id?: string }

function headersOf({ signatureScheme = 'stripe', secrets = [secret('whsec_test')], headers = [], body = '{}', id = 'del_1', ...rest }: Fields): string[] {
  return attemptHeaders({
    subscription: { signatureScheme, secrets, headers }, delivery: { id, eventType: 'order.paid', body: Buffer.from(body) },
    attempt: 1, sentAt: 1_700_000_000_000, version: '1.2.3', replay: 0, ...rest,
  })
}

function asObject(flat: string[]): Record<string, string> {
  assert.equal(flat.length % 2, 0)
  const pairs = Array.from({ length: flat.length / 2 }, (_, n) => [flat[2 * n]!.toLowerCase(), flat[2 * n + 1]!] as const)
  assert.equal(new Set(pairs.map(([name]) => name)).size, pairs.length, 'no header twice')
  return Object.fromEntries(pairs)
}

test('the headers of a first attempt, as published', () => {
  assert.deepEqual(headersOf({ body: '{"text":"🙄"}', sentAt: 1_700_000_000_999, headers: [{ name: 'Authorization', value: 'Bearer x' }] }), [
    'Content-Type', 'application/json',
    'X-Webhook-Event', 'order.paid',
    'X-Webhook-Delivery', 'del_1',
    'X-Webhook-Attempt', '1',
    'X-Webhook-Signature', 't=1700000000,v1=508c5243574c662f9801a6a94b8114e620b8ae4523cc81a20e43d9ad6803c2ed',
    'Idempotency-Key', 'del_1',
    'User-Agent', 'posthouse/1.2.3',
    'Authorization', 'Bearer x',
  ])
})

test('published vectors of the default scheme', () => {
  const signature = (fields: Fields) => asObject(headersOf(fields))['x-webhook-signature']
  assert.equal(
    signature({ body: '{"weight":136.0,"id":8202522731445525542}' }),
    't=1700000000,v1=72c50c5a3f905516e4eed2d8a586c9d50271b0d39762c3b905860a8f0a002d04',
  )
  assert.equal(
    signature({
      body: JSON.stringify({ id: 'evt_test_webhook', object: 'event' }, null, 2), secrets: [secret('whsec_test_secret')], sentAt: 1_614_265_330_000,
    }),
    't=1614265330,v1=af4ead0627a34a8cca29808e8de9ada8e41a92e6237c63cef6eacf51d36cca34',
  )
})

test('the vector of Standard Webhooks', () => {
  const headers = asObject(headersOf({
    signatureScheme: 'standard', secrets: [secret(standardKey)], id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: 1_614_265_330_000, body: '{"test": 2432232314}', attempt: 3,
  }))
  assert.equal(headers['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  assert.equal(headers['webhook-id'], 'msg_p5jXN8AQM9LWM0D4loKWxJek')
  assert.equal(headers['webhook-timestamp'], '1614265330')
  assert.equal(headers['x-webhook-signature'], undefined, 'one scheme at a time')
  assert.equal(headers['x-webhook-attempt'], '3')
  assert.equal(headers['x-webhook-delivery'], headers['webhook-id'])
})

test("Stripe's verifier accepts what we send, and nothing else", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat({ max: 4_000_000_000 }), (body, seconds) => {
      const sentAt = seconds * 1000
      const header = asObject(headersOf({ body, sentAt }))['x-webhook-signature']!
      assert.deepEqual(stripeSignature.verifyHeader(body, header, 'whsec_test', 300, undefined, sentAt), true)
      assert.throws(() => stripeSignature.verifyHeader(`${body} `, header, 'whsec_test', 300, undefined, sentAt))
      assert.throws(() => stripeSignature.verifyHeader(body, header, 'whsec_test2', 300, undefined, sentAt))
      assert.throws(() => stripeSignature.verifyHeader(body, header, 'whsec_test', 300, undefined, sentAt + 301_000))
    }),
    { numRuns: 50 },
  )
})

test("the Standard Webhooks verifier accepts what we send, and nothing else", () => {
  const secrets = [secret(standardKey)]
  const webhook = new Webhook(standardKey)
  fc.assert(
    fc.property(fc.json(), (body) => {
      // This verifier looks at the clock itself.
      const headers = asObject(headersOf({ signatureScheme: 'standard', secrets, body, sentAt: Date.now() }))
      webhook.verify(body, headers)
      assert.throws(() => webhook.verify(`${body} `, headers))
      assert.throws(() => webhook.verify(body, { ...headers, 'webhook-id': 'del_2' }))
      assert.throws(() => new Webhook('whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3').verify(body, headers))
    }),
    { numRuns: 50 },
  )
  const old = asObject(headersOf({ signatureScheme: 'standard', secrets, sentAt: Date.now() - 310_000 }))
  assert.throws(() => webhook.verify('{}', old), /too old/)
})

test('while secrets overlap there is one signature for each that is active, newest first', () => {
  const at = 1_700_000_000_000
  const secrets = [secret('whsec_old', 1, at + 1), secret('whsec_new', 3), secret('whsec_gone', 2, at), secret('whsec_older', 0, at + 99)]
  assert.deepEqual(activeSecrets(secrets, at).map(({ secret }) => secret), ['whsec_new', 'whsec_old', 'whsec_older'])
  const header = asObject(headersOf({ secrets, sentAt: at }))['x-webhook-signature']!
  const alone = (text: string) => asObject(headersOf({ secrets: [secret(text)], sentAt: at }))['x-webhook-signature']!.split(',')[1]
  assert.equal(header, ['t=1700000000', alone('whsec_new'), alone('whsec_old'), alone('whsec_older')].join(','))
  for (const text of ['whsec_new', 'whsec_old', 'whsec_older']) assert.ok(stripeSignature.verifyHeader('{}', header, text, 300, undefined, at))
  assert.throws(() => stripeSignature.verifyHeader('{}', header, 'whsec_gone', 300, undefined, at))

  const keys = [standardKey, 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3']
  const now = Date.now()
  const standard = asObject(headersOf({ signatureScheme: 'standard', secrets: keys.map((key, n) => secret(key, n)), sentAt: now }))
  assert.match(standard['webhook-signature']!, /^v1,[^ ,]+ v1,[^ ,]+$/)
  for (const key of keys) new Webhook(key).verify('{}', standard)
})

test('nothing is ever signed with no secret or with what a lenient decoder finds in a bad one', () => {
  assert.throws(() => headersOf({ secrets: [] }), /no active signing secret/)
  assert.throws(() => headersOf({ secrets: [secret('whsec_x', 1, 5)] }), /no active signing secret/)
  for (const bad of ['whsec_!!!!', 'whsec_', '', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', `${standardKey}\n`]) {
    assert.throws(() => headersOf({ signatureScheme: 'standard', secrets: [secret(bad)] }), (error: Error) => /rotate it/.test(error.message) && (bad.length <= 6 || !error.message.includes(bad)))
  }
})

test('a retry changes only attempt and signature, a replay adds its number', () => {
  const first = asObject(headersOf({}))
  const second = asObject(headersOf({ attempt: 2, sentAt: 1_700_000_300_000 }))
  const changed = Object.keys(first).filter((name) => first[name] !== second[name])
  assert.deepEqual(changed, ['x-webhook-attempt', 'x-webhook-signature'])
  assert.equal(first['x-webhook-replay'], undefined)
  for (const replay of [1, 2]) assert.equal(asObject(headersOf({ replay }))['x-webhook-replay'], String(replay))
})

test('a custom header cannot replace ours or add lines of its own', () => {
  const refused = [
    ['X-Webhook-Signature', 'x'], ['x-webhook-anything', 'x'], ['Host', 'x'], ['content-length', '0'], ['Content-Type', 'text/plain'], ['webhook-id', 'x'], ['Idempotency-Key', 'x'],
    ['User-Agent', 'x'], ['Connection', 'close'], ['Transfer-Encoding', 'chunked'], ['TE', 'x'], ['Trailer', 'x'], ['Upgrade', 'x'], ['Expect', '100-continue'], ['Keep-Alive', 'x'],
    ['Proxy-Authorization', 'x'], ['Accept-Encoding', 'gzip'], ['Content-Encoding', 'gzip'],
    ['', 'x'], ['a b', 'x'], ['a:', 'x'], ['a\n', 'x'], ['é', 'x'], ['x'.repeat(129), 'x'],
    ['X-A', 'a\r\nX-Injected: 1'], ['X-A', 'a\n'], ['X-A', 'a\u0000'], ['X-A', ''], ['X-A', ' a'], ['X-A', 'a '], ['X-A', '\ta'], ['X-A', 'é'], ['X-A', '🙄'], ['X-A', 'a\u007f'],
    ['X-A', 'x'.repeat(4097)],
  ] as const
  for (const [name, value] of refused) {
    assert.notEqual(checkCustomHeader(name, value), null, `${name}: ${value}`)
    assert.throws(() => headersOf({ headers: [{ name, value }] }), /cannot be sent/)
  }
  const accepted = [['Authorization', 'Bearer a.b-c='], ['X-A', 'a b\tc'], ["!#$%&'*+-.^_`|~9", 'x'], ['__proto__', 'x'], ['X-A', 'x'.repeat(4096)]] as const
  for (const [name, value] of accepted) assert.equal(checkCustomHeader(name, value), null, name)
})

test('the reason a header is refused for never repeats its value', () => {
  for (const value of ['s3cret\n', 's3cret ', 's3crét', `s3cret${'x'.repeat(5000)}`]) assert.ok(!checkCustomHeader('Authorization', value)!.includes('s3cr'))
})

test('accepted headers are ASCII lines whatever went in', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (name, value) => {
      if (checkCustomHeader(name, value) === null) assert.match(`${name}: ${value}`, /^[\u0021-\u007e]+: [\t\u0020-\u007e]+$/)
    }),
  )
})

test('weak and undecodable secrets are refused when they are brought along', () => {
  const random = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'
  for (const scheme of ['stripe', 'standard'] as const) {
    assert.equal(checkSecret(scheme, random), null)
    for (const bad of ['', 'x', 'whsec_', 'whsec_!!!!', `${random}\n`, ` ${random}`, 'whsec_short', `whsec_${'A'.repeat(32)}`, `whsec_${'é'.repeat(32)}`, 'é'.repeat(40)]) {
      assert.notEqual(checkSecret(scheme, bad), null, `${scheme}: ${JSON.stringify(bad)}`)
    }
  }
  assert.equal(checkSecret('stripe', 'correct-horse_battery.staple'), null)
  assert.match(checkSecret('standard', 'correct-horse_battery.staple') ?? '', /begin with whsec_/)
  const encoded = (bytes: number) => `whsec_${Buffer.from(Array.from({ length: bytes }, (_, n) => n)).toString('base64')}`
  assert.deepEqual([23, 24, 64, 65].map((bytes) => checkSecret('standard', encoded(bytes)) === null), [false, true, true, false])
  assert.match(checkSecret('standard', encoded(25).slice(0, -2)) ?? '', /not padded base64/, 'without its padding')
  assert.match(checkSecret('standard', encoded(25).replace(/.==$/, 'h==')) ?? '', /not padded base64/, 'not canonical')
  assert.match(checkSecret('standard', 'whsec_-_-_-_-_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0') ?? '', /not padded base64/, 'base64url')
})
