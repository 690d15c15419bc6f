import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionOf } from '../../shared/kafka/partitioner.ts'
import { listDeliveries, type DeliveryQuery } from '../../shared/lookup/deliveries.ts'
import { findDelivery } from '../../shared/lookup/delivery-history.ts'
import { readLastAttempts } from '../../shared/lookup/last-attempts.ts'
import { createScanAccount } from '../../shared/lookup/scan-account.ts'
import { createTestTopic, kafkaForTests, produceTo } from '../support/kafka.ts'
import { attempt, dead, scannerFor, success, writeAttempts } from './attempts.ts'

const { skip } = kafkaForTests()

/** Two endpoints whose keys lie in different ones of 2 partitions. */
const [here = '', there = ''] = [0, 1].map((partition) =>
  Array.from({ length: 50 }, (_, at) => `ep_${at}`).find((key) => partitionOf(Buffer.from(key), 2) === partition))

test('each delivery is listed once, as it stands now, the latest first', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'list', { partitions: 2 })
  const scanner = scannerFor(t)
  const list = async (query: Partial<DeliveryQuery> = {}) => (await listDeliveries(scanner, topic, { limit: 50, ...query }, createScanAccount()))
    .map(({ deliveryId, state, attempt }) => `${deliveryId} ${state} ${attempt}`)
  // One request each, so that their times differ.
  const written = [
    attempt('del_1', { endpointKey: here, tenant: 'acme' }),
    attempt('del_2', { endpointKey: there, subscriptionId: 'sub_b', eventType: 'order.paid.twice' }),
    attempt('del_3', { endpointKey: here, ...success }),
    attempt('del_1', { endpointKey: here, tenant: 'acme', attempt: 2, ...dead, error: 'connect_timeout', status: null }),
    // Its URL was changed while it waited: what was written under the old key must not pass for its state.
    attempt('del_2', { endpointKey: here, subscriptionId: 'sub_b', eventType: 'order.paid.twice', attempt: 2, ...success }),
    attempt('del_4', { endpointKey: here }),
    attempt('del_4', { endpointKey: there, attempt: 2, ...success }),
  ]
  for (const one of written) await writeAttempts(topic, [one])

  assert.deepEqual(await list(), ['del_4 success 2', 'del_2 success 2', 'del_1 dlq 2', 'del_3 success 1'])
  assert.deepEqual(await list({ limit: 2 }), ['del_4 success 2', 'del_2 success 2'])
  assert.deepEqual(await list({ states: ['waiting'] }), [], 'all went on')
  assert.deepEqual(await list({ states: ['dlq', 'waiting'] }), ['del_1 dlq 2'])
  assert.deepEqual(await list({ outcome: 'connect_timeout' }), ['del_1 dlq 2'])
  assert.deepEqual(await list({ outcome: '200' }), ['del_4 success 2', 'del_2 success 2', 'del_3 success 1'])
  assert.deepEqual(await list({ outcome: '503' }), [], 'what came before the last does not count')
  assert.deepEqual(await list({ subscriptionId: 'sub_b' }), ['del_2 success 2'])
  assert.deepEqual(await list({ eventId: 'evt-of-del_1' }), ['del_1 dlq 2'])
  assert.deepEqual(await list({ eventId: 'evt-of-del_' }), [], 'an id is not a part of one')
  assert.deepEqual(await list({ tenant: 'acme' }), ['del_1 dlq 2'])
  assert.deepEqual(await list({ eventType: 'order.paid.*' }), ['del_2 success 2'])
  assert.deepEqual(await list({ since: Date.now() + 60_000 }), [])

  const account = createScanAccount()
  const ofEndpoint = await listDeliveries(scanner, topic, { endpointKey: there, limit: 50 }, account)
  assert.deepEqual(ofEndpoint.map(({ deliveryId, state }) => [deliveryId, state]), [['del_4', 'success'], ['del_2', 'waiting']], 'as it was there')
  assert.deepEqual([account.partitions.get(topic), account.records], [1, 2], 'nothing but its partition')
})

test('the latest are found without reading all, and memory ends what would be too much', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'list-many', { partitions: 2 })
  const scanner = scannerFor(t)
  const many = Array.from({ length: 3_000 }, (_, at) => attempt(`del_${at}`, { partition: at % 2 } as object))
  for (let at = 0; at < many.length; at += 500) await writeAttempts(topic, many.slice(at, at + 500))
  const account = createScanAccount()
  const found = await listDeliveries(scanner, topic, { limit: 20 }, account)
  assert.deepEqual(new Set(found.map(({ deliveryId }) => Number(deliveryId.slice(4)) >= 2_500)), new Set([true]))
  assert.equal(found.length, 20)
  assert.ok(account.records <= 500 && account.wanted === 3_000 && account.leftOut === null, JSON.stringify(account))
  assert.ok(account.oldestAt! <= account.youngestAt!)

  const bounded = createScanAccount()
  await listDeliveries(scanner, topic, { limit: 20, states: ['success'] }, bounded, { maxDeliveries: 100 })
  assert.match(bounded.leftOut ?? '', /100 deliveries/)
  const unbounded = createScanAccount()
  assert.deepEqual(await listDeliveries(scanner, topic, { limit: 20, states: ['success'] }, unbounded), [])
  assert.deepEqual([unbounded.records, unbounded.leftOut], [3_000, null])
})

test('what cannot be read is counted, and hides nothing else', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'list-unreadable')
  await writeAttempts(topic, [attempt('del_1')])
  await produceTo(topic, [{ value: 'no attempt' }, { value: null }, { value: '' }])
  const account = createScanAccount()
  const found = await listDeliveries(scannerFor(t), topic, { limit: 10 }, account)
  assert.deepEqual([found.map(({ deliveryId }) => deliveryId), account.unreadable, account.records], [['del_1'], 2, 4])
})

test('a history has every attempt of a delivery and its replays, and reading ends with the first', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'history', { partitions: 2 })
  const scanner = scannerFor(t)
  const others = (from: number, to: number, endpointKey = here) =>
    writeAttempts(topic, Array.from({ length: to - from }, (_, at) => attempt(`del_${from + at}`, { endpointKey })))
  await others(0, 500)
  await others(500, 1_000)
  const mine = [
    attempt('del_mine', { endpointKey: there }),
    attempt('del_mine', { endpointKey: here, attempt: 2, startedAt: 1_700_000_060_000, excerpt: 'busy' }),
    attempt('del_mine', { endpointKey: here, attempt: 3, ...dead }),
    attempt('del_mine', { endpointKey: here, replay: 1, ...success }),
  ]
  for (const [at, one] of mine.entries()) {
    await writeAttempts(topic, [one])
    // The first one lies deeper in its partition than the later ones in theirs.
    if (at === 0) await others(2_000, 2_300, there)
  }
  // Its acknowledgement was lost.
  await writeAttempts(topic, [mine[3]!])
  await others(1_000, 1_100)

  const account = createScanAccount()
  const { attempts, isWhole } = await findDelivery(scanner, topic, { deliveryId: 'del_mine' }, account)
  assert.deepEqual(attempts, mine.map((one, at) => ({ ...one, recordedAt: attempts[at]?.recordedAt })))
  assert.ok(isWhole)
  assert.ok(account.records < account.wanted, `${account.records} read`)

  const part = await findDelivery(scanner, topic, { deliveryId: 'del_mine', endpointKey: here }, createScanAccount())
  assert.deepEqual([part.attempts.length, part.isWhole], [3, false], 'the first lies elsewhere')
  const none = await findDelivery(scanner, topic, { deliveryId: 'del_min' }, createScanAccount())
  assert.deepEqual(none.attempts, [])
})

test('what only a replay of events made is whole too; the last attempts of an endpoint come latest first', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'history-replay')
  const scanner = scannerFor(t)
  await writeAttempts(topic, [attempt('del_late', { replay: 1_700_000_000 })])
  await writeAttempts(topic, [attempt('del_late', { replay: 1_700_000_000, attempt: 2, ...success }), attempt('del_cut', { attempt: 2, ...success, endpointKey: 'ep_b' })])
  const late = await findDelivery(scanner, topic, { deliveryId: 'del_late' }, createScanAccount())
  assert.deepEqual([late.attempts.length, late.isWhole], [2, true])
  assert.equal((await findDelivery(scanner, topic, { deliveryId: 'del_cut' }, createScanAccount())).isWhole, false, 'its first attempt is gone')
  const last = async (limit: number) => (await readLastAttempts(scanner, topic, { endpointKey: 'ep_a', limit }, createScanAccount())).map(({ attempt }) => attempt)
  assert.deepEqual([await last(10), await last(1), await last(0)], [[2, 1], [2], []])
})
