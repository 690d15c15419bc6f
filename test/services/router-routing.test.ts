import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noPolicy } from '../../shared/domain/policy.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { createOffsetLedger } from '../../shared/domain/offset-ledger.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { PartitionWindow, type Lease } from '../../shared/kafka/partition-window.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import type { Writer } from '../../shared/kafka/writer.ts'
import { createLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/registry.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { createLine } from '../../services/router/line.ts'
import { createRouterMetrics } from '../../services/router/metrics.ts'
import { createRouting } from '../../services/router/route.ts'
import { until } from '../support/until.ts'
import { jsonEvent } from './router-lab.ts'

const log = createLog({ service: 'router', level: 'silent' })

function subscriptionOf(id: string): StoredSubscription {
  return {
    id, tenant: null, url: 'https://receiver.example/', endpointKey: `ep_${id}`, eventTypes: ['*'], state: 'active', signatureScheme: 'stripe',
    secrets: [], headers: [], policy: noPolicy, description: null, createdAt: 1, updatedAt: 1, offset: 0, appendedAt: 1,
  }
}

/** Routing by itself, with a table and a writer whose every step the test decides: what a real broker does at no given moment. */
function openRouting({ count = 1, writesUntilFull = Infinity } = {}) {
  let freshAsOf = performance.now()
  let isStale = false
  let newer = 0
  let hasRoom = true
  let matches = 0
  let waiters: (() => void)[] = []
  const written: { readonly records: readonly ProducedRecord[]; acknowledge(isTaken?: boolean): void }[] = []
  const subscriptions = Array.from({ length: count }, (_, n) => subscriptionOf(`sub_${n}`))
  const brokerTime = createBrokerTime()
  const wake = (): void => { for (const waiter of waiters.splice(0)) waiter() }
  const waitForWake = () => new Promise<void>((resolve) => { waiters.push(resolve) })
  const writer: Writer = {
    write: (records) => new Promise((resolve) => {
      written.push({ records, acknowledge: (isTaken = true) => resolve(isTaken) })
      if (written.length >= writesUntilFull) hasRoom = false
    }),
    hasRoom: () => hasRoom,
    room: async () => { while (!hasRoom) await waitForWake() },
    refusals: () => [],
  }
  const routing = createRouting({
    topics: { deliveries: 'deliveries', rejected: 'rejected' },
    door: { idField: 'id', tenantField: 'tenant', type: { kind: 'field', name: 'type' } },
    subscriptions: {
      match(_tenant, type) {
        matches += 1
        if (type === 'our.bug') throw new Error('a fault')
        return { routed: subscriptions, disabledCount: 0 }
      },
      freshAsOf: () => (isStale ? freshAsOf : performance.now()),
      waitFresh: waitForWake,
      newerCount: () => newer,
    },
    writer, brokerTime, log, metrics: createRouterMetrics(createMetrics({ version: 'test', service: 'router' })),
  })
  const window = new PartitionWindow({
    topic: 'events', partition: 0, tag: '', ledger: createOffsetLedger({ committedOffset: null, metadata: null }), onFinished: () => undefined,
  })
  let offset = 0
  return {
    routing, window, written, brokerTime, wake,
    knowClock: () => brokerTime.sample(0, 1, Date.now()),
    setStale(ageMs: number | null): void {
      isStale = ageMs !== null
      freshAsOf = performance.now() - (ageMs ?? 0)
      wake()
    },
    setNewer(value: number): void {
      newer = value
      wake()
    },
    setRoom(value: boolean): void {
      hasRoom = value
      wake()
    },
    matches: () => matches,
    take(id: string, type = 'a.b'): Lease {
      const value = Buffer.from(jsonEvent(id, { type }))
      const lease = window.take({ topic: 'events', partition: 0, offset: offset++, key: null, value, headers: [], timestamp: Date.now() }, 1000)!
      routing.take(lease)
      return lease
    },
    made: () => written.flatMap(({ records }) => records).length,
    committable: () => window.ledger.commit()?.offset ?? null,
  }
}

/** Long enough for everything that is going to happen without a push to have happened. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => { setImmediate(resolve) })
}

test('an event is matched only with a table fresh as of less than a second ago, and with no record of a newer posthouse in it', async () => {
  const one = openRouting()
  one.knowClock()
  one.setStale(1_001)
  one.take('waits')
  await settle()
  assert.equal(one.matches(), 0)
  one.setStale(null)
  await until(() => one.matches() === 1)
  one.setNewer(1)
  one.take('waits too')
  await settle()
  one.wake()
  await settle()
  assert.equal(one.matches(), 1)
  one.setNewer(0)
  await until(() => one.matches() === 2)
})

test('a record is let go when every delivery is acknowledged, and not when one was not taken', async () => {
  const one = openRouting({ count: 250 })
  one.knowClock()
  one.take('whole')
  one.take('torn')
  await until(() => one.made() === 500)
  for (const { records, acknowledge } of one.written) {
    const isTorn = decodeDelivery(records[0]!.value!).eventId === 'torn'
    acknowledge(!isTorn || records.length === 100)
    await settle()
  }
  assert.equal(one.committable(), 1)
  assert.equal(one.window.unfinishedCount, 1)
  assert.equal(await one.routing.drain(1), true)
})

test('deliveries are made as there is room, and events one after the other', async () => {
  const one = openRouting({ count: 1_000 })
  one.knowClock()
  one.setRoom(false)
  one.take('first')
  one.take('second')
  await settle()
  assert.equal(one.made(), 0)
  one.setRoom(true)
  await until(() => one.made() === 2_000)
  const order = one.written.flatMap(({ records }) => records).map(({ value }) => decodeDelivery(value!).eventId)
  assert.deepEqual(order, [...Array.from({ length: 1_000 }, () => 'first'), ...Array.from({ length: 1_000 }, () => 'second')])
  assert.ok(one.written.every(({ records }) => records.length <= 100))
})

test('until the brokers\' clock is known one delivery finds it out, and the others carry its time', async () => {
  const one = openRouting({ count: 3 })
  one.take('first')
  await until(() => one.made() === 1)
  await settle()
  assert.equal(one.made(), 1)
  const hourAhead = Date.now() + 3_600_000
  const now = one.brokerTime.localNow()
  one.brokerTime.sample(now - 1, now, hourAhead)
  one.written[0]!.acknowledge()
  await until(() => one.made() === 3)
  const times = one.written.flatMap(({ records }) => records).map(({ value }) => decodeDelivery(value!).routedAt)
  assert.ok(times[0]! < hourAhead - 3_000_000 && times[1]! >= hourAhead && times[2] === times[1], String(times))
})

test('a drain begins no event, lets what was begun end, and says whether it did', async () => {
  const one = openRouting()
  one.knowClock()
  one.take('begun')
  await until(() => one.made() === 1)
  const draining = one.routing.drain(60_000)
  one.take('not begun')
  await settle()
  assert.equal(one.matches(), 1)
  one.written[0]!.acknowledge()
  assert.equal(await draining, true)
  await settle()
  assert.equal(one.matches(), 1)
  one.routing.resume()
  await until(() => one.made() === 2)
  assert.equal(await one.routing.drain(1), false)
  assert.equal(one.routing.inFlight(), 1)
})

test('a fan-out stands still between a hand-over\'s drain and the join, and ends where the partition was lost', async () => {
  const one = openRouting({ count: 1_000, writesUntilFull: 3 })
  one.knowClock()
  one.take('long')
  await until(() => one.made() === 300)
  await one.routing.drain(1)
  one.setRoom(true)
  await settle()
  assert.equal(one.made(), 300)
  one.routing.resume()
  await until(() => one.made() === 400)
  one.window.isHeld = false
  one.routing.dropLost()
  one.setRoom(true)
  await settle()
  assert.equal(one.made(), 400)
})

test('a fault of ours costs the one record that brings it out: it goes to the rejected topic', async () => {
  const one = openRouting()
  one.take('bug', 'our.bug')
  one.take('good')
  await until(() => one.made() === 2)
  const [rejected] = one.written[0]!.records
  assert.equal(rejected?.topic, 'rejected')
  assert.deepEqual(rejected.headers?.find(({ name }) => name === 'posthouse-reason')?.value, 'internal')
  assert.doesNotMatch(JSON.stringify(rejected.headers), /a fault"/)
  for (const { acknowledge } of one.written) acknowledge()
  await until(() => one.committable() === 2)
})

test('the line gives what was put in, in order, and forgets what was lost', () => {
  const line = createLine()
  const held = new PartitionWindow({ topic: 'e', partition: 0, tag: '', ledger: createOffsetLedger({ committedOffset: null, metadata: null }), onFinished: () => undefined })
  const lost = new PartitionWindow({ topic: 'e', partition: 1, tag: '', ledger: createOffsetLedger({ committedOffset: null, metadata: null }), onFinished: () => undefined })
  const put = (window: PartitionWindow, offset: number): void =>
    line.push(window.take({ topic: 'e', partition: window.partition, offset, key: null, value: null, headers: [], timestamp: 0 }, 1)!)
  const taken: number[] = []
  for (let n = 0; n < 2_000; n += 1) {
    put(held, n)
    put(lost, n)
    if (n % 3 === 0) taken.push(line.take()!.record.offset)
  }
  assert.deepEqual(taken, taken.toSorted((a, b) => a - b))
  const size = line.size
  assert.equal(size, 4_000 - taken.length)
  lost.isHeld = false
  line.dropLost()
  assert.equal(line.size, 2_000 - taken.length / 2 - (taken.length % 2) / 2)
  const rest: number[] = []
  for (let lease = line.take(); lease; lease = line.take()) rest.push(lease.record.offset)
  assert.deepEqual(rest, Array.from({ length: rest.length }, (_, n) => 2_000 - rest.length + n))
  assert.equal(line.size, 0)
})
