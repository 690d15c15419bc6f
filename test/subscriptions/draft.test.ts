import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSecret } from '../../shared/domain/ids.ts'
import { defaultPolicy, noPolicy } from '../../shared/domain/policy.ts'
import type { Subscription } from '../../shared/domain/subscription.ts'
import { draftChange, draftNew, type Drafted, type NewSubscription, type SubscriptionChange } from '../../shared/subscriptions/draft.ts'

const rules = { allowsHttp: false, policyDefaults: defaultPolicy }
const now = 1_800_000_000_000
const hour = 3_600_000
const wanted: NewSubscription = { url: 'https://Example.com:443/hooks#top', eventTypes: ['order.*'] }

const subscriptionOf = (drafted: Drafted): Subscription => {
  assert.ok('subscription' in drafted, JSON.stringify(drafted))
  return drafted.subscription
}
const created = (change: Partial<NewSubscription> = {}): Subscription => subscriptionOf(draftNew({ ...wanted, ...change }, rules, now))
const changed = (change: SubscriptionChange, at = now + 1, present = created()): Subscription => subscriptionOf(draftChange(present, change, rules, at))
const problemsOf = (drafted: Drafted): readonly string[] => 'problems' in drafted ? drafted.problems : []

test('a new subscription has a normalised URL, its key, a secret of its own, and is active', () => {
  const subscription = created()
  assert.equal(subscription.url, 'https://example.com/hooks')
  assert.match(subscription.id, /^sub_[a-z2-7]{26}$/)
  assert.match(subscription.endpointKey, /^ep_[a-z2-7]{32}$/)
  assert.match(subscription.secrets[0]!.secret, /^whsec_/)
  assert.deepEqual([subscription.state, subscription.tenant, subscription.createdAt, subscription.updatedAt], ['active', null, now, now])
  assert.notEqual(created().id, created().id)
})

test('everything that is wrong is said at once, and neither the URL nor a secret with it', () => {
  const problems = problemsOf(draftNew({
    url: 'http://example.com/token-in-path', eventTypes: [], tenant: '', secret: 'short-secret', headers: [{ name: 'Host', value: 'hidden-value' }, { name: 'x', value: 'a' }, { name: 'X', value: 'b' }],
    policy: { ...noPolicy, maxAttempts: 0 },
  }, rules, now))
  assert.equal(problems.length, 7, problems.join('\n'))
  for (const pattern of [/tenant/, /http is not allowed/, /at least one event type/, /secret/, /Host is reserved/, /X is given twice/, /maxAttempts/]) {
    assert.ok(problems.some((problem) => pattern.test(problem)), String(pattern))
  }
  assert.ok(!/token-in-path|short-secret|hidden-value/.test(problems.join()))
})

test('a change keeps what it does not name, and is always dated later', () => {
  const present = created({ tenant: 'acme', headers: [{ name: 'X-Key', value: 'v' }] })
  const paused = changed({ state: 'paused' }, now + 5, present)
  assert.deepEqual(paused, { ...present, state: 'paused', updatedAt: now + 5 })
  // A clock that runs behind the one that dated the present record.
  assert.equal(changed({ description: 'x' }, now - hour, present).updatedAt, now + 1)
})

test('a URL change moves the endpoint key', () => {
  const present = created()
  assert.notEqual(changed({ url: 'https://example.com/other' }, now, present).endpointKey, present.endpointKey)
})

test('rotation: the new secret signs first, the old ones beside it until the overlap ends', () => {
  const first = created()
  const old = first.secrets[0]!.secret
  const rotated = changed({ rotation: { overlapMs: 24 * hour } }, now + hour, first)
  assert.deepEqual(rotated.secrets.map(({ secret, expiresAt }) => [secret === old, expiresAt]), [[false, null], [true, now + 25 * hour]])
  // A second rotation does not lengthen the life of the first one's old secret.
  const again = changed({ rotation: { overlapMs: 48 * hour } }, now + 2 * hour, rotated)
  assert.deepEqual(again.secrets.map(({ expiresAt }) => expiresAt), [null, now + 50 * hour, now + 25 * hour])
  // What has expired goes with the next change of anything.
  assert.equal(changed({ state: 'paused' }, now + 30 * hour, again).secrets.length, 2)
  const brought = newSecret()
  assert.deepEqual(changed({ rotation: { overlapMs: 0, secret: brought } }, now + hour, again).secrets, [{ secret: brought, createdAt: now + hour, expiresAt: null }])
})

test('rotation: what cannot be is refused', () => {
  const present = created()
  const refused = (change: SubscriptionChange, pattern: RegExp, of = present): void => {
    assert.match(problemsOf(draftChange(of, change, rules, now + 1)).join(), pattern)
  }
  refused({ rotation: { overlapMs: -1 } }, /overlap/)
  refused({ rotation: { overlapMs: NaN } }, /overlap/)
  refused({ rotation: { overlapMs: hour, secret: present.secrets[0]!.secret } }, /active already/)
  refused({ rotation: { overlapMs: hour }, secret: newSecret() }, /either/)
  refused({ rotation: { overlapMs: hour, secret: 'whsec_tooshort' } }, /secret/)
  let many = present
  for (let round = 0; round < 4; round += 1) many = changed({ rotation: { overlapMs: hour } }, now + 1, many)
  refused({ rotation: { overlapMs: hour } }, /5 secrets are active already/, many)
})

test('a scheme that the present secret does not suit is refused', () => {
  const present = created({ secret: 'a-plain-text-secret-of-30-characters' })
  assert.match(problemsOf(draftChange(present, { signatureScheme: 'standard' }, rules, now)).join(), /must begin with whsec_/)
  // Also an older one: every request would have to be signed with it until it has expired.
  const rotation = { overlapMs: hour }
  assert.match(problemsOf(draftChange(present, { signatureScheme: 'standard', rotation }, rules, now)).join(), /must begin with whsec_.*older one/)
  const rotated = changed({ rotation }, now, present)
  assert.match(problemsOf(draftChange(rotated, { signatureScheme: 'standard' }, rules, now + 1)).join(), /older one/)
  assert.equal(changed({ signatureScheme: 'standard' }, now + hour + 1, rotated).secrets.length, 1, 'an expired one stands in nobody\'s way')
})
