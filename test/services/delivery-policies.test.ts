import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Delivery } from '../../shared/domain/delivery.ts'
import { noPolicy, type SubscriptionPolicy } from '../../shared/domain/policy.ts'
import type { Subscription } from '../../shared/domain/subscription.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver, type Reaction } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { openDeliveryLab, policyOf } from './delivery-lab.ts'

const { skip } = kafkaForTests()
const second = 1_000
const own = (fields: Partial<SubscriptionPolicy>): SubscriptionPolicy => ({ ...noPolicy, ...fields })

type Lab = Awaited<ReturnType<typeof openDeliveryLab>>

/** Deliveries that wait, with the due time in their header, by event. */
async function waitingByEvent(lab: Lab): Promise<Map<string, { readonly delivery: Delivery; readonly topic: string; readonly dueAt: number }>> {
  return new Map((await lab.waiting()).map((record) => {
    const delivery = decodeDelivery(record.value!)
    return [delivery.eventId, { delivery, topic: record.topic, dueAt: Number(record.header('posthouse-due')) }]
  }))
}

type Case = {
  readonly policy: Partial<SubscriptionPolicy>
  readonly answer?: Reaction
  readonly delivery?: Partial<Delivery>
  /** Least and most of the wait, ms; or what the dead letter says. */
  readonly expected: readonly [number, number] | { readonly reason: string; readonly error: string }
}

/** The installation: waits of 1 and 2 s, additive, not adaptive, timeout 2 s. Every endpoint answers 503 unless it says otherwise. */
const cases: Readonly<Record<string, Case>> = {
  'nothing of its own': { policy: {}, expected: [1_000, 1_100] },
  'schedule': { policy: { scheduleMs: [5_000] }, expected: [5_000, 5_500] },
  'schedule, second wait': { policy: { scheduleMs: [5_000, 3_000] }, delivery: { attemptsMade: 1, lastWaitMs: 5_000 }, expected: [3_000, 3_300] },
  'end of the schedule': { policy: { scheduleMs: [5_000] }, delivery: { attemptsMade: 1 }, expected: { reason: 'exhausted', error: 'http_503' } },
  'max attempts': { policy: { maxAttempts: 1 }, expected: { reason: 'exhausted', error: 'http_503' } },
  'exponential': { policy: { strategy: 'exponential', adaptive: false, baseMs: 3_000 }, delivery: { attemptsMade: 1 }, expected: [6_000, 6_600] },
  'exponential goes beyond the schedule': {
    policy: { strategy: 'exponential', adaptive: false, baseMs: 3_000, maxAttempts: 9 }, delivery: { attemptsMade: 7 }, expected: [384_000, 422_400],
  },
  'the longest wait': { policy: { strategy: 'exponential', adaptive: false, baseMs: 3_000, maxMs: 4_000, maxAttempts: 9 }, delivery: { attemptsMade: 7 }, expected: [3_600, 4_000] },
  // One attempt, which failed: health 0.
  'adaptive, unhealthy': { policy: { adaptive: true }, expected: [2_000, 2_200] },
  'exponential is adaptive': { policy: { strategy: 'exponential', baseMs: 3_000 }, expected: [6_000, 6_600] },
  'full jitter': { policy: { scheduleMs: [100_000], jitter: 'full' }, expected: [0, 100_000] },
  'equal jitter': { policy: { scheduleMs: [100_000], jitter: 'equal' }, expected: [50_000, 100_000] },
  'decorrelated jitter': { policy: { jitter: 'decorrelated', baseMs: 2_000, maxMs: 60_000 }, delivery: { attemptsMade: 1, lastWaitMs: 10_000 }, expected: [2_000, 30_000] },
  'a status that is permanent here': {
    policy: { statusClasses: [{ status: 503, failureClass: 'permanent' }] }, expected: { reason: 'permanent_failure', error: 'http_503' },
  },
  'a status that is retriable here': { policy: { statusClasses: [{ status: 400, failureClass: 'retriable' }] }, answer: { status: 400 }, expected: [1_000, 1_100] },
  'a 410 that is ambiguous here': { policy: { statusClasses: [{ status: 410, failureClass: 'ambiguous' }] }, answer: { status: 410 }, expected: [1_000, 1_100] },
  'a 410': { policy: {}, answer: { status: 410 }, expected: { reason: 'gone', error: 'http_410' } },
}

test('every field of a subscription\'s policy decides what becomes of its deliveries, and of no other\'s', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const names = Object.keys(cases)
  const receiver = await startReceiver(t, ({ path }) => cases[names[Number(path.slice(1))] ?? '']?.answer ?? { status: 503 })
  // One endpoint each, so that none has a part in another's health.
  const subscriptions = await Promise.all(names.map((name, index) => lab.subscribe(`${receiver.url}/${index}`, { policy: own(cases[name]!.policy) })))
  await lab.start()
  await Promise.all(names.map((name, index) => lab.deliver(subscriptions[index]!, { eventId: name, ...cases[name]!.delivery })))
  await until(async () => (await lab.attempts()).length === names.length, { deadlineMs: 20_000 })

  const [waiting, deadLetters] = [await waitingByEvent(lab), await lab.deadLetters()]
  for (const [name, { expected }] of Object.entries(cases)) {
    const dead = deadLetters.find(({ delivery }) => delivery.eventId === name)
    if ('reason' in expected) {
      assert.deepEqual({ reason: dead?.reason, error: dead?.lastError }, expected, name)
      continue
    }
    const { delivery, dueAt } = waiting.get(name) ?? assert.fail(`${name} does not wait`)
    const [least, most] = expected
    assert.ok(delivery.lastWaitMs >= least && delivery.lastWaitMs <= most, `${name}: ${delivery.lastWaitMs} ms`)
    const last = delivery.attempts.at(-1)!
    // What is known of the broker's clock may have become more exact meanwhile.
    assert.ok(Math.abs(dueAt - (last.startedAt + last.durationMs + delivery.lastWaitMs)) < second, `${name} is due after its wait`)
    assert.equal(dead, undefined, name)
  }
})

test('the timeout of a subscription ends its attempts, and no other\'s', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t, () => 'hang')
  const hasty = await lab.subscribe(`${receiver.url}/hasty`, { policy: own({ timeoutMs: 1_000 }) })
  const patient = await lab.subscribe(`${receiver.url}/patient`, { policy: own({ timeoutMs: 30_000 }) })
  await lab.start({ policyDefaults: { ...policyOf([1000]), timeoutMs: 30_000 } })
  await lab.deliver(patient)
  await receiver.waitForRequests(1)
  await lab.deliver(hasty, { eventId: 'hasty' })
  await until(async () => (await lab.attempts()).length === 1)
  const [attempt] = await lab.attempts()
  assert.deepEqual([attempt?.subscriptionId, attempt?.error, attempt?.failureClass], [hasty.id, 'timeout', 'ambiguous'])
  assert.ok(attempt!.durationMs >= 1_000 && attempt!.durationMs < 30_000, `${attempt!.durationMs} ms`)
  const { delivery } = (await waitingByEvent(lab)).get('hasty')!
  assert.ok(delivery.lastWaitMs >= 1_000, 'the wait counts from the end of the attempt')
})

test('a policy that is written while a retry waits holds at the next attempt', { skip }, async (t) => {
  const lab = await openDeliveryLab(t)
  const receiver = await startReceiver(t, () => ({ status: 503 }))
  const before = own({ scheduleMs: [1_000, 1_000, 1_000] })
  const changes: Readonly<Record<string, Partial<SubscriptionPolicy>>> = {
    'longer waits': { scheduleMs: [1_000, 60_000, 1_000] },
    'another strategy': { strategy: 'exponential', adaptive: false, baseMs: 5_000, maxAttempts: 20 },
    'fewer attempts': { maxAttempts: 2 },
    'another class': { statusClasses: [{ status: 503, failureClass: 'permanent' }] },
    'the default again': {},
  }
  const names = Object.keys(changes)
  const subscriptions = await Promise.all(names.map((name) => lab.subscribe(`${receiver.url}/${encodeURIComponent(name)}`, { policy: before })))
  const { delivery: service } = await lab.start()
  await Promise.all(names.map((name, index) => lab.deliver(subscriptions[index]!, { eventId: name })))
  await until(async () => (await lab.attempts()).length === names.length)
  const records = await lab.waiting()

  for (const [index, name] of names.entries()) await rewrite(lab, subscriptions[index]!, own(changes[name]!))
  const changedAt = performance.now()
  await until(() => service.subscriptions.freshAsOf() >= changedAt)
  // What retry-tier does when the time has come: the same bytes, back to where deliveries are.
  for (const { key, value } of records) await lab.produce({ topic: lab.topics.deliveries, key: String(key), value })
  await until(async () => (await lab.attempts()).length === 2 * names.length)

  const secondWaits = new Map((await lab.waiting()).map(({ value }) => decodeDelivery(value!)).filter(({ attemptsMade }) => attemptsMade === 2)
    .map(({ eventId, lastWaitMs }) => [eventId, Math.floor(lastWaitMs / second)]))
  const ends = (await lab.deadLetters()).map(({ delivery, reason }) => [delivery.eventId, reason, delivery.attemptsMade])
  assert.ok(secondWaits.get('longer waits')! >= 60)
  assert.ok([10, 11].includes(secondWaits.get('another strategy')!), 'twice the base after two attempts')
  assert.equal(secondWaits.get('the default again'), 2)
  assert.deepEqual(ends.sort(([a], [b]) => String(a).localeCompare(String(b))), [['another class', 'permanent_failure', 2], ['fewer attempts', 'exhausted', 2]])
})

/** The subscription as it was, with another policy. */
const rewrite = (lab: Lab, subscription: Subscription, policy: SubscriptionPolicy): Promise<Subscription> =>
  lab.subscribe(subscription.url, { ...subscription, policy, updatedAt: subscription.updatedAt + 1 })
