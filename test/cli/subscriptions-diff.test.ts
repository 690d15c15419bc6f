import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSubscriptionsFile } from '../../cli/subscriptions-file.ts'
import { diffSubscriptions, type Diff } from '../../cli/subscriptions-diff.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { draftNew, type NewSubscription } from '../../shared/subscriptions/draft.ts'

const rules = { allowsHttp: false, policyDefaults: defaultPolicy }
const now = 1_800_000_000_000
const secret = 'whsec_abcdefghijklmnopqrstuvwxyz'

function stored(wanted: NewSubscription, offset = 0): StoredSubscription {
  const drafted = draftNew(wanted, rules, now - 1_000)
  if ('problems' in drafted) throw new Error(drafted.problems.join())
  return { ...drafted.subscription, offset, appendedAt: now - 1_000 }
}

function diff(
  entries: readonly object[], present: readonly StoredSubscription[], prune = false, env: Record<string, string> = {},
): Diff {
  return diffSubscriptions(parseSubscriptionsFile(JSON.stringify(entries), 'file.json', env), present, { prune, rules, now })
}

const a = { url: 'https://a.example/hook', eventTypes: ['order.*'] }

test('what is there as wanted is left alone; what the file leaves out stays as it is', () => {
  const present = stored({ ...a, secret, state: 'paused', description: 'kept', headers: [{ name: 'X-A', value: '1' }] })
  for (const entry of [
    a, { ...a, url: 'HTTPS://A.example:443/hook' }, { ...a, secret }, { ...a, state: 'paused', headers: { 'X-A': '1' } },
    { ...a, id: present.id },
  ]) {
    const { steps, unchanged, problems } = diff([entry], [present], true)
    assert.deepEqual([steps, unchanged, problems], [[], 1, []], JSON.stringify(entry))
  }
})

test('every kind of change is named, without secrets, header values or URLs', () => {
  const present = stored({ ...a, secret, headers: [{ name: 'X-A', value: 'old-value' }] })
  const entry = {
    ...a, id: present.id, url: 'https://b.example/hook?token=t0ken', eventTypes: ['order.*', 'x'], state: 'disabled',
    signatureScheme: 'standard', secret: { env: 'NEW' }, headers: { 'X-A': { env: 'VALUE' } },
    policy: { schedule: ['1m'], statusClasses: { 404: 'permanent' } }, description: 'd',
  }
  const { steps, problems } = diff(
    [entry], [present], false,
    { NEW: `whsec_${Buffer.from('a key of thirty two random bytes').toString('base64')}`, VALUE: 'new-value' },
  )
  assert.deepEqual(problems, [])
  const [step] = steps
  assert.deepEqual(step?.changes, [
    'URL (host a.example to b.example)', 'event types +x', 'active to disabled', 'signature stripe to standard', 'secret',
    'headers (X-A)', 'policy (2 attempts after 1m, additive jitter, 404 permanent; 1m in all, at worst 3m)', 'description',
  ])
  assert.deepEqual(step?.action === 'update' && step.change.policy?.scheduleMs, [60_000])
})

test('tenant and URL are the key; prune deletes what the file has not, and nothing without it', () => {
  const present = [stored({ ...a, tenant: 'one' }, 1), stored({ ...a, tenant: 'two' }, 2), stored(a, 3)]
  const entries = [{ ...a, tenant: 'two' }, { ...a, tenant: 'three' }]
  assert.deepEqual(diff(entries, present).steps.map(({ action }) => action), ['create'])
  const pruned = diff(entries, present, true)
  assert.deepEqual(pruned.steps.map((step) => [step.action, step.action === 'create' ? step.drafted.tenant : step.present.tenant]), [
    ['create', 'three'], ['delete', 'one'], ['delete', null],
  ])
})

test('what is ambiguous or impossible stops everything, each with its place', () => {
  const twins = [stored(a, 1), stored(a, 2)]
  const problemsOf = (
    entries: readonly object[], present: readonly StoredSubscription[] = [],
  ) => diff(entries, present).problems.join('\n')
  assert.match(problemsOf([a], twins), /^subscriptions\[0\]: 2 subscriptions have this tenant and URL \(sub_/)
  assert.equal(problemsOf([{ ...a, id: twins[0]!.id }], twins), '', 'an id says which')
  assert.match(
    problemsOf([a, { ...a, eventTypes: ['x'] }]), /^subscriptions\[1\]: it has the tenant and the URL of subscriptions\[0\]/,
  )
  assert.match(
    problemsOf([{ ...a, id: twins[0]!.id }, { ...a, id: twins[0]!.id }], twins),
    /subscriptions\[1\]: it is the same subscription as subscriptions\[0\]/,
  )
  assert.match(problemsOf([{ ...a, id: 'sub_none' }]), /there is no subscription sub_none/)
  assert.match(problemsOf([{ ...a, id: twins[0]!.id, tenant: 'x' }], twins), /is of no tenant, and that cannot change/)
  assert.match(problemsOf([{ url: 'http://a.example/', eventTypes: [] }]), /http is not allowed.*\n.*at least one event type/)
})

test('a file that is wrong is refused with every fault and none of its values', () => {
  const parse = (text: string) => () => parseSubscriptionsFile(text, 'file.json', {})
  assert.throws(
    parse('{"subscriptions": [{"secret": "s3cret"'),
    (error: Error) => /file\.json is not JSON/.test(error.message) && !error.message.includes('s3cret'),
  )
  assert.throws(parse(JSON.stringify({ subscriptions: [{ ...a, urls: 1, state: 'on', policy: { base: '1 minute' } }] })),
    ({ message }: Error) => [/\[0\]\.state: /, /\.policy\.base: .*not a duration/, /urls/].every((fault) => fault.test(message)))
  assert.throws(
    parse(JSON.stringify([{ ...a, secret: { env: 'NOT_SET' } }])),
    /takes values from the environment that it has not: NOT_SET/,
  )
})
