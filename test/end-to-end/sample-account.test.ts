import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLedger, isClosed, percentile, type Ledger } from '../../deploy/sample/account.ts'
import type { Arrival } from '../../deploy/sample/received-line.ts'
import { deliveryId } from '../../shared/domain/ids.ts'

const source = 'webhooks.events'
const subscriptions = ['healthy', 'dead'].map((endpoint) => ({ endpoint, subscriptionId: `sub_${endpoint}` }))
const idOf = (eventId: string, endpoint: string): string => deliveryId({ tenant: null, source, eventId, subscriptionId: `sub_${endpoint}` })

const arrivalOf = (eventId: string, endpoint: string, overrides: Partial<Arrival> = {}): Arrival => ({
  endpoint, deliveryId: idOf(eventId, endpoint), eventId, attempt: 1, receivedAt: 1_005, answeredAt: 1_010, isVerified: true, status: 200, sha256: `body of ${eventId}`, ...overrides,
})

/** Two events, both delivered to healthy and dead at dead. */
function settledLedger(): Ledger {
  const ledger = createLedger({ source, subscriptions })
  for (const id of ['evt_1', 'evt_2']) {
    ledger.acknowledged({ id, acknowledgedAt: 1_000, sha256: `body of ${id}` })
    ledger.arrived(arrivalOf(id, 'healthy'))
    ledger.arrived(arrivalOf(id, 'dead', { status: 500 }))
    ledger.died(idOf(id, 'dead'))
  }
  return ledger
}

test('an account that closes', () => {
  const account = settledLedger().account(true)
  assert.deepEqual(account, {
    events: 2, subscriptions: 2, expected: 4, delivered: 2, deadLettered: 2, waiting: 0, lost: 0, repeated: 0, attempts: 4, signatureFailures: 0,
    p50Ms: 10, p99Ms: 10,
    endpoints: {
      healthy: { expected: 2, delivered: 2, deadLettered: 0, attempts: 2, p50Ms: 10, p99Ms: 10 },
      dead: { expected: 2, delivered: 0, deadLettered: 2, attempts: 2, p50Ms: null, p99Ms: null },
    },
  })
  assert.ok(isClosed(account))
})

test('what is neither at the receiver nor dead waits, and is lost once nothing is under way', () => {
  const ledger = settledLedger()
  ledger.acknowledged({ id: 'evt_3', acknowledgedAt: 1_000, sha256: 'body of evt_3' })
  ledger.arrived(arrivalOf('evt_3', 'healthy'))
  assert.deepEqual([ledger.account(false).waiting, ledger.account(false).lost], [1, 0])
  assert.deepEqual([ledger.account(true).waiting, ledger.account(true).lost], [0, 1])
  assert.ok(!isClosed(ledger.account(false)))
  assert.ok(!isClosed(ledger.account(true)))
})

test('sets are compared, not counts: a repeat and a stranger do not stand in for what is missing', () => {
  const ledger = createLedger({ source, subscriptions: subscriptions.slice(0, 1) })
  for (const id of ['evt_1', 'evt_2']) ledger.acknowledged({ id, acknowledgedAt: 1_000, sha256: `body of ${id}` })
  ledger.arrived(arrivalOf('evt_1', 'healthy'))
  ledger.arrived(arrivalOf('evt_1', 'healthy', { answeredAt: 1_400 }))
  ledger.arrived(arrivalOf('evt_9', 'healthy'))
  ledger.died(idOf('evt_8', 'healthy'))
  const { delivered, deadLettered, lost, repeated, attempts, p99Ms } = ledger.account(true)
  assert.deepEqual({ delivered, deadLettered, lost, repeated, attempts, p99Ms }, { delivered: 1, deadLettered: 0, lost: 1, repeated: 1, attempts: 2, p99Ms: 10 })
})

test('only an answer of 2xx that was given counts as delivered', () => {
  for (const [status, isDelivered] of [[200, true], [299, true], [199, false], [300, false], [503, false], [null, false]] as const) {
    const ledger = createLedger({ source, subscriptions: subscriptions.slice(0, 1) })
    ledger.acknowledged({ id: 'evt_1', acknowledgedAt: 1_000, sha256: 'body of evt_1' })
    ledger.arrived(arrivalOf('evt_1', 'healthy', { status }))
    assert.equal(isClosed(ledger.account(true)), isDelivered, String(status))
  }
})

test('other bytes than were produced are no delivery', () => {
  const ledger = createLedger({ source, subscriptions: subscriptions.slice(0, 1) })
  ledger.acknowledged({ id: 'evt_1', acknowledgedAt: 1_000, sha256: 'body of evt_1' })
  ledger.arrived(arrivalOf('evt_1', 'healthy', { sha256: 'of something else' }))
  assert.equal(ledger.account(true).lost, 1)
  assert.equal(ledger.altered(), 1)
})

test('one signature that was not right keeps the account open, whatever became of the delivery', () => {
  const ledger = settledLedger()
  ledger.arrived(arrivalOf('evt_1', 'healthy', { isVerified: false, status: 401 }))
  const account = ledger.account(true)
  assert.equal(account.signatureFailures, 1)
  assert.deepEqual([account.waiting, account.lost], [0, 0])
  assert.ok(!isClosed(account))
})

test('nothing expected is nothing shown', () => {
  assert.ok(!isClosed(createLedger({ source, subscriptions }).account(true)))
})

test('a delivery may arrive before its event is known to be acknowledged, and an event be named twice', () => {
  const ledger = createLedger({ source, subscriptions: subscriptions.slice(0, 1) })
  ledger.arrived(arrivalOf('evt_1', 'healthy', { answeredAt: 999 }))
  for (const acknowledgedAt of [1_000, 1_001]) ledger.acknowledged({ id: 'evt_1', acknowledgedAt, sha256: 'body of evt_1' })
  const account = ledger.account(true)
  assert.deepEqual([account.events, account.expected, account.delivered, account.p50Ms], [1, 1, 1, 0])
})

test('whatever happens, in whatever order, each expected delivery is counted in one place, and every hidden one is missed', () => {
  const fate = fc.constantFrom('delivered', 'dead', 'both', 'neither')
  fc.assert(fc.property(fc.array(fc.tuple(fate, fate), { minLength: 1, maxLength: 12 }), fc.integer(), (fates, seed) => {
    const ledger = createLedger({ source, subscriptions })
    const acts = fates.flatMap((ofEvent, n) => [
      () => ledger.acknowledged({ id: `evt_${n}`, acknowledgedAt: 1_000, sha256: `body of evt_${n}` }),
      ...ofEvent.flatMap((one, index) => {
        const { endpoint } = subscriptions[index]!
        const arrive = (): void => ledger.arrived(arrivalOf(`evt_${n}`, endpoint))
        const die = (): void => ledger.died(idOf(`evt_${n}`, endpoint))
        return { delivered: [arrive], dead: [die], both: [arrive, die], neither: [] }[one]
      }),
    ])
    const order = acts.map((act, index) => ({ act, rank: Math.sin(seed + index * 7919) })).sort((a, b) => a.rank - b.rank)
    for (const { act } of order) act()
    const account = ledger.account(true)
    const count = (...wanted: string[]): number => fates.flat().filter((one) => wanted.includes(one)).length
    assert.equal(account.expected, fates.length * 2)
    assert.equal(account.delivered, count('delivered', 'both'))
    assert.equal(account.deadLettered, count('dead', 'both'))
    assert.equal(account.lost, count('neither'))
    assert.equal(isClosed(account), count('neither') === 0)
  }), { numRuns: 200 })
})

test('percentiles are of the nearest rank', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1)
  assert.equal(percentile(hundred, 0.5), 50)
  assert.equal(percentile(hundred, 0.99), 99)
  assert.equal(percentile([7], 0.99), 7)
  assert.equal(percentile([], 0.5), null)
})
