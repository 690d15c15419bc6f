import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import type { Subscription } from '../../shared/domain/subscription.ts'
import { encodeSubscription } from '../../shared/records/subscription-codec.ts'
import { draftNew, type NewSubscription } from '../../shared/subscriptions/draft.ts'
import { kafkaForTests, produceTo, withAdmin } from '../support/kafka.ts'
import { startLab } from './lab.ts'

const options = { skip: kafkaForTests().skip, timeout: 60_000 }

const subscription = (change: Partial<NewSubscription>, now = Date.now()): Subscription => {
  const drafted = draftNew({ url: 'https://example.com/hooks', eventTypes: ['*'], ...change }, { allowsHttp: false, policyDefaults: defaultPolicy }, now)
  assert.ok('subscription' in drafted)
  return drafted.subscription
}

test('a table answers who wants an event, by tenant, pattern and state, as of its last records', options, async (t) => {
  const { topic, table } = await startLab(t)
  const active = subscription({ eventTypes: ['order.*', 'order.created'] })
  const paused = subscription({ eventTypes: ['order.created'], state: 'paused' })
  const disabled = subscription({ state: 'disabled' })
  const ofAcme = subscription({ tenant: 'acme' })
  const gone = subscription({})
  const record = (one: Subscription) => ({ key: one.id, value: encodeSubscription(one) })
  await produceTo(topic, [...[active, paused, disabled, ofAcme, gone].map(record), { key: gone.id, value: null }])
  await table.waitFresh(performance.now())

  const match = (tenant: string | null, type: string) => {
    const { routed, disabledCount } = table.match(tenant, type)
    return { routed: routed.map(({ id }) => id).sort(), disabledCount }
  }
  assert.deepEqual(match(null, 'order.created'), { routed: [active.id, paused.id].sort(), disabledCount: 1 })
  assert.deepEqual(match(null, 'order.paid.late'), { routed: [active.id], disabledCount: 1 })
  assert.deepEqual(match('acme', 'order.created'), { routed: [ofAcme.id], disabledCount: 0 })
  assert.deepEqual(match('other', 'order.created'), { routed: [], disabledCount: 0 })
  assert.equal(table.get(gone.id), 'deleted')
  assert.equal(table.get('sub_unknown'), undefined)
  assert.equal(table.list().length, 4)
  const stored = table.get(active.id)
  assert.ok(stored !== undefined && stored !== 'deleted')
  const { offset, appendedAt, ...same } = stored
  assert.deepEqual(same, active)
  assert.equal(offset, 0)
  assert.ok(appendedAt > 0)

  // The last record is the truth: other patterns, another state.
  await produceTo(topic, [record({ ...active, eventTypes: ['invoice.*'] }), record({ ...paused, state: 'disabled' })])
  await table.waitFresh(performance.now())
  assert.deepEqual(match(null, 'order.created'), { routed: [], disabledCount: 2 })
  assert.deepEqual(match(null, 'invoice.sent'), { routed: [active.id], disabledCount: 1 })
})

test('records that cannot be read change nothing; those of a newer posthouse are told apart until they are readable again', options, async (t) => {
  const { topic, table, writer } = await startLab(t)
  const known = subscription({})
  const other = subscription({})
  await produceTo(topic, [{ key: known.id, value: encodeSubscription(known) }, { key: other.id, value: encodeSubscription(other) }])
  const newer = Buffer.from(encodeSubscription(known))
  // Another fingerprint: bytes 2 to 9 of a single-object header.
  newer.fill(0x5a, 2, 10)
  await produceTo(topic, [{ key: '', value: 'a compacted topic takes no null key, but an empty one' }, { key: other.id, value: 'not ours' }, { key: known.id, value: newer }])
  await table.waitFresh(performance.now())
  assert.equal(table.newerCount(), 1)
  assert.equal(table.ignoredCount(), 2)
  assert.deepEqual(table.match(null, 'a').routed.map(({ id }) => id).sort(), [known.id, other.id].sort())
  assert.equal(table.get(known.id), undefined, 'the record may forbid what the one before it allowed')
  assert.notEqual(table.get(other.id), undefined)
  assert.deepEqual(await writer.update(known.id, { state: 'paused' }), { kind: 'newer', id: known.id })
  await produceTo(topic, [{ key: known.id, value: encodeSubscription(known) }])
  await table.waitFresh(performance.now())
  assert.equal(table.newerCount(), 0)
})

test('a topic that was made anew leaves nothing of the old one', options, async (t) => {
  const { topic, table } = await startLab(t)
  const old = subscription({})
  await produceTo(topic, Array.from({ length: 3 }, () => ({ key: old.id, value: encodeSubscription(old) })))
  await table.waitFresh(performance.now())
  await withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    for (let isMade = false; !isMade;) {
      isMade = await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] }).catch(() => false)
    }
  })
  const fresh = subscription({})
  await produceTo(topic, [{ key: fresh.id, value: encodeSubscription(fresh) }])
  await table.waitFresh(performance.now())
  assert.equal(table.get(old.id), undefined)
  assert.deepEqual(table.match(null, 'a').routed.map(({ id }) => id), [fresh.id])
})
