import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge } from '../../services/delivery/judge.ts'
import { subscriptionOf } from '../dead-letters/lab.ts'
import { sampleDelivery } from '../records/arbitraries.ts'

test('of an endpoint that is gone, what was under way is kept, what was routed later is not wanted, and a replay is a dead letter again', () => {
  const endpoint = { goneAt: 1_000, goneWrittenAt: 50_000, isThrottled: () => false }
  const verdictOf = (replay: number, routedAt: number, appendedAt = 1_000) => judge({
    delivery: { ...sampleDelivery, replay, routedAt }, lookup: subscriptionOf('sub_abc', { appendedAt }), endpointOf: () => endpoint,
    now: 60_000, expiryMs: 1_000_000,
  })
  assert.deepEqual(verdictOf(0, 50_000), { kind: 'dead', state: 'permanent_failure', reason: 'gone', subscription: subscriptionOf('sub_abc') })
  assert.deepEqual(verdictOf(0, 50_001), { kind: 'cancelled', reason: 'gone' })
  assert.equal(verdictOf(1, 50_001).kind, 'dead', 'it is not to vanish: its dead letter was cleared when it was replayed')
  assert.equal(verdictOf(1, 50_001, 1_001).kind, 'attempt', 'the subscription was written again')
})

test('a replay expires by the time it was replayed, not by when its event was routed first', () => {
  const verdictOf = (routedAt: number) => judge({
    delivery: { ...sampleDelivery, replay: 1, routedAt, origin: { ...sampleDelivery.origin, timestamp: 0 } }, lookup: subscriptionOf('sub_abc'),
    endpointOf: () => ({ goneAt: null, goneWrittenAt: null, isThrottled: () => false }), now: 100_000, expiryMs: 10_000,
  })
  assert.equal(verdictOf(90_001).kind, 'attempt')
  assert.deepEqual(verdictOf(90_000), { kind: 'dead', state: 'expired', reason: 'expired', subscription: subscriptionOf('sub_abc') })
})
