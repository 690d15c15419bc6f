import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter } from '../../shared/domain/delivery.ts'
import { endpointKey } from '../../shared/domain/ids.ts'
import { discardDeadLetters, planDiscard } from '../../shared/dead-letters/discard.ts'
import { planReplay, replayDeadLetters, type ReplayTarget } from '../../shared/dead-letters/replay.ts'
import { indexDeadLetters } from '../../shared/dead-letters/scan.ts'
import { ProduceError } from '../../shared/kafka/produce-error.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { idOf, keyOf, letterOf, newerBytes, openDeadLetterLab, recordOf, subscriptionOf } from './lab.ts'

const { skip } = kafkaForTests()

type Lab = Awaited<ReturnType<typeof openDeadLetterLab>>
const openKeys = async (lab: Lab): Promise<number> => (await indexDeadLetters(lab.source)).keys.openCount()
const manyLetters = (count: number, bodyBytes = 20): DeadLetter[] =>
  Array.from({ length: count }, (_, number) => letterOf(number, { delivery: { body: Buffer.from(JSON.stringify({ number, pad: 'x'.repeat(bodyBytes) })) } }))

test('each is written as the next replay of the same delivery, byte for byte, to its present endpoint, and then cleared', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  const letters = [letterOf('a'), letterOf('b', { delivery: { replay: 4 } }), letterOf('raw', { delivery: { body: Buffer.from([0x7b, 0xff, 0x00, 0x7d]) } })]
  await lab.write(letters)
  lab.subscriptions.set('sub_a', subscriptionOf('sub_a', { url: 'http://elsewhere.example/' }))
  const begunAt = Date.now()

  const plan = await planReplay(lab.source, { filter: {} })
  assert.deepEqual([...plan.bySubscription], [['sub_a', { endpointKey: endpointKey('http://elsewhere.example/'), url: 'http://elsewhere.example/', count: 3 }]])
  assert.equal((await lab.delivered()).length, 0, 'a plan writes nothing')

  const report = await replayDeadLetters(lab.source, lab.target, { filter: {} })
  assert.deepEqual([report.end, report.done, report.refused, report.failed, report.leftovers], ['complete', 3, 0, 0, 0])
  const delivered = await lab.delivered()
  assert.equal(delivered.length, 3)
  for (const letter of letters) {
    const { key, delivery } = delivered.find((one) => one.delivery.id === letter.delivery.id)!
    assert.equal(key, endpointKey('http://elsewhere.example/'))
    assert.deepEqual({ ...delivery, routedAt: 0 }, { ...letter.delivery, replay: letter.delivery.replay + 1, routedAt: 0, attemptsMade: 0, lastWaitMs: 0, attempts: [] })
    assert.ok(Math.abs(delivery.routedAt - begunAt) < 60_000, 'its 14 days begin anew')
  }
  for (const { key, isTombstone, topic } of lab.written.slice(-3)) assert.ok(isTombstone && topic === lab.dlq && letters.map(keyOf).includes(key))
  assert.ok(lab.written.slice(0, 3).every(({ topic }) => topic === lab.deliveries), 'no tombstone before every delivery of the batch is acknowledged')
  assert.equal(await openKeys(lab), 0)
  assert.equal((await replayDeadLetters(lab.source, lab.target, { filter: {} })).done, 0)
})

test('one that fails again is a dead letter of another key, which its own replay cannot clear', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write([letterOf('a')])
  const { producer } = lab.target
  // As fast as can be: dead again before its predecessor is cleared.
  const hasty: ReplayTarget = { ...lab.target, producer: { async send(record) {
    const acknowledgement = await producer.send(record)
    if (record.topic === lab.deliveries) await lab.write([letterOf('a', { delivery: { replay: 1 } })])
    return acknowledgement
  } } }
  await replayDeadLetters(lab.source, hasty, { filter: {} })
  assert.equal(await openKeys(lab), 1)
  const second = await replayDeadLetters(lab.source, lab.target, { filter: {} })
  assert.equal(second.done, 1)
  assert.deepEqual(new Set((await lab.delivered()).map(({ delivery }) => delivery.replay)), new Set([1, 2]))
})

test('stopped anywhere and run again, at most one batch is written twice, with the same ids and numbers, and nothing is left out', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  const letters = manyLetters(1_700)
  for (let at = 0; at < letters.length; at += 500) await lab.write(letters.slice(at, at + 500))
  const { producer } = lab.target
  let runs = 0
  let repeatedBefore = 0
  for (const dieAfter of [700, 1_300, Infinity]) {
    let writes = 0
    // What a kill leaves: what was acknowledged by then, and nothing of the rest. A write without an answer holds the run up.
    const dying: ReplayTarget = { ...lab.target, unansweredAfterMs: 1_500, producer: {
      send: (record) => (++writes > dieAfter ? new Promise(() => {}) : producer.send(record)),
    } }
    const report = await replayDeadLetters(lab.source, dying, { filter: {} })
    assert.equal(report.end, dieAfter === Infinity ? 'complete' : 'unanswered')
    runs += 1
    const written = lab.written.filter(({ topic }) => topic === lab.deliveries).length
    const distinct = new Set((await lab.delivered()).map(({ delivery }) => delivery.id)).size
    assert.ok(written - distinct - repeatedBefore <= 500, `run ${runs} repeated ${written - distinct - repeatedBefore}`)
    repeatedBefore = written - distinct
  }
  assert.ok(repeatedBefore > 0, 'the test stopped it between deliveries and their tombstones')
  const delivered = await lab.delivered()
  assert.equal(new Set(delivered.map(({ delivery }) => delivery.id)).size, letters.length)
  assert.deepEqual(new Set(delivered.map(({ delivery }) => delivery.replay)), new Set([1]))
  assert.equal(await openKeys(lab), 0)
})

test('what a killed replay left behind is cleared, not sent again, where the delivery has died since', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write([letterOf('a'), letterOf('a', { delivery: { replay: 1 } }), letterOf('b')])
  const report = await replayDeadLetters(lab.source, lab.target, { filter: {} })
  assert.deepEqual([report.done, report.leftovers], [2, 1])
  assert.deepEqual((await lab.delivered()).map(({ delivery }) => `${delivery.id}.${delivery.replay}`).toSorted(), [`${idOf('a')}.2`, `${idOf('b')}.1`].toSorted())
  assert.equal(await openKeys(lab), 0)
})

test('what cannot be replayed stays, with the reason', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  for (const [id, found] of [['sub_deleted', 'deleted'], ['sub_newer', 'newer'], ['sub_disabled', subscriptionOf('sub_disabled', { state: 'disabled' })]] as const) {
    lab.subscriptions.set(id, found)
  }
  const of = (seed: string, subscriptionId: string) => letterOf(seed, { delivery: { subscriptionId } })
  await lab.write([of('1', 'sub_deleted'), of('2', 'sub_newer'), of('3', 'sub_disabled'), of('4', 'sub_nobody'), of('5', 'sub_a')])
  await lab.producer.send({ ...recordOf(lab.dlq, of('6', 'sub_a')), value: newerBytes() })
  const source = { ...lab.source, gone: new Map([[subscriptionOf('sub_gone').endpointKey, 5_000]]) }
  lab.subscriptions.set('sub_gone', subscriptionOf('sub_gone'))
  await lab.write([of('7', 'sub_gone')])

  const report = await replayDeadLetters(source, lab.target, { filter: {} })
  assert.deepEqual([report.done, report.refused], [1, 6])
  assert.deepEqual(report.refusedByReason, {
    subscription_deleted: 1, subscription_newer: 1, subscription_disabled: 1, subscription_unknown: 1, newer: 1, endpoint_gone: 1,
  })
  assert.deepEqual(report.refusals.map(({ key }) => key).toSorted(), ['1', '2', '3', '4', '6', '7'].map((seed) => `${idOf(seed)}.0`).toSorted())
  assert.ok(report.refusals.every(({ message }) => message.length > 20))
  assert.equal(await openKeys(lab), 6)
})

test('what was replayed or discarded is refused by name, with when and how; forced, it is sent under a number of its own', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write([letterOf('a'), letterOf('b')])
  await replayDeadLetters(lab.source, lab.target, { filter: { ids: [idOf('a')] } })
  await discardDeadLetters(lab.source, lab.target, { filter: { ids: [`${idOf('b')}.0`] } })

  const again = await replayDeadLetters(lab.source, lab.target, { filter: { ids: [idOf('a'), `${idOf('b')}.0`, 'del_nobody'] } })
  assert.deepEqual([again.done, again.refusedByReason, again.missing], [0, { already_replayed: 1, already_discarded: 1 }, ['del_nobody']])
  assert.match(again.refusals.find(({ reason }) => reason === 'already_replayed')!.message, /as replay 1 at 20\d\d-/)

  const forced = await replayDeadLetters(lab.source, lab.target, { filter: { ids: [idOf('a'), idOf('b')] }, forcedReplay: 1_700_000_000 })
  assert.deepEqual([forced.done, forced.refused], [2, 0])
  assert.deepEqual((await lab.delivered()).map(({ delivery }) => `${delivery.id}.${delivery.replay}`).toSorted(), [
    `${idOf('a')}.1`, `${idOf('a')}.1700000000`, `${idOf('b')}.1700000000`,
  ].toSorted())
})

test('one that Kafka refuses fails alone and stays', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t, { deliveriesConfig: { 'max.message.bytes': '20000' } })
  await lab.write([...manyLetters(10), letterOf('large', { delivery: { body: Buffer.from('x'.repeat(50_000)) } })])
  const report = await replayDeadLetters(lab.source, lab.target, { filter: {} })
  assert.deepEqual([report.end, report.done, report.failed], ['complete', 10, 1])
  assert.equal(report.failures[0]?.key, `${idOf('large')}.0`)
  assert.match(report.failures[0]?.message ?? '', /refuses a record of/)
  assert.equal(await openKeys(lab), 1)
})

test('a tombstone that Kafka refuses leaves a dead letter, which is counted as failed', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write([letterOf('a')])
  const { producer } = lab.target
  const refusing: ReplayTarget = { ...lab.target, producer: {
    send: (record) => (record.value === null ? Promise.reject(new ProduceError('refused', 'no right to write')) : producer.send(record)),
  } }
  const report = await replayDeadLetters(lab.source, refusing, { filter: {} })
  assert.deepEqual([report.done, report.failed], [0, 1])
  assert.equal(await openKeys(lab), 1)
})

test('it stops between two batches when it is asked to, and at once when its turn is lost', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  const letters = manyLetters(1_200)
  for (let at = 0; at < letters.length; at += 400) await lab.write(letters.slice(at, at + 400))
  const controller = new AbortController()
  const { producer } = lab.target
  let writes = 0
  const interrupting: ReplayTarget = { ...lab.target, producer: { send(record) {
    if (++writes === 100) controller.abort(new Error('enough'))
    return producer.send(record)
  } } }
  const interrupted = await replayDeadLetters(lab.source, interrupting, { filter: {}, signal: controller.signal })
  assert.deepEqual([interrupted.end, interrupted.done], ['interrupted', 500])
  assert.equal(await openKeys(lab), 700)

  const lost = await replayDeadLetters(lab.source, { ...lab.target, turn: { isHeld: async () => false } }, { filter: {} })
  assert.deepEqual([lost.end, lost.done], ['turn_lost', 0])
  const before = await replayDeadLetters(lab.source, lab.target, { filter: {}, signal: AbortSignal.abort(new Error('before it began')) })
  assert.deepEqual([before.end, before.done], ['interrupted', 0])
  assert.equal(await openKeys(lab), 700)
})

test('with a rate it takes its time', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write(manyLetters(30))
  const begunAt = performance.now()
  assert.equal((await replayDeadLetters(lab.source, { ...lab.target, ratePerSecond: 20 }, { filter: {} })).done, 30)
  // Two batches of 10 are paid for before the third begins.
  assert.ok(performance.now() - begunAt >= 990, `${performance.now() - begunAt} ms`)
})

test('large ones go a few at a time', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write(Array.from({ length: 30 }, (_, number) => letterOf(number, { delivery: { body: Buffer.alloc(500_000, 'x') } })))
  assert.equal((await replayDeadLetters(lab.source, lab.target, { filter: {} })).done, 30)
  const firstTombstone = lab.written.findIndex(({ isTombstone }) => isTombstone)
  assert.ok(firstTombstone < 12, `${firstTombstone} deliveries in the first batch`)
})

test('discarding clears without sending; what a newer posthouse wrote stays, what nobody can read goes', { skip }, async (t) => {
  const lab = await openDeadLetterLab(t)
  await lab.write([letterOf('a', { reason: 'gone' }), letterOf('b'), letterOf('c'), letterOf('c', { delivery: { replay: 1 } })])
  await lab.producer.send({ ...recordOf(lab.dlq, letterOf('newer')), value: newerBytes() })
  await lab.producer.send({ ...recordOf(lab.dlq, letterOf('broken')), value: Buffer.from('not avro') })
  const plan = await planDiscard(lab.source, { filter: {} })
  assert.deepEqual([plan.done, Object.fromEntries(plan.byReason), plan.refusedByReason], [5, { gone: 1, exhausted: 4 }, { newer: 1 }])
  assert.equal(await openKeys(lab), 6)
  assert.deepEqual((await discardDeadLetters(lab.source, lab.target, { filter: { reason: 'gone' } })).done, 1)
  const all = await discardDeadLetters(lab.source, lab.target, { filter: {} })
  assert.deepEqual([all.end, all.done, all.refused], ['complete', 4, 1])
  assert.equal(await openKeys(lab), 1)
  assert.equal((await lab.delivered()).length, 0)
  const again = await discardDeadLetters(lab.source, lab.target, { filter: { ids: [`${idOf('a')}.0`] } })
  assert.deepEqual([again.done, again.refusedByReason], [0, { already_discarded: 1 }])
  const tombstones = (await readTopic(lab.dlq)).filter(({ value }) => value === null)
  assert.ok(tombstones.every((record) => record.header('posthouse-cleared') === 'discarded'))
})
