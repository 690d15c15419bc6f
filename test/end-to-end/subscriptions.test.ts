import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noPolicy } from '../../shared/domain/policy.ts'
import type { CompressionName } from '../../shared/kafka/compression.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { isSignedBy, readRequest, tallyOf } from './received.ts'

const { skip } = kafkaForTests()

/** Long enough for a subscription to be changed while a retry waits, on any machine. */
const longWait = { ...noPolicy, scheduleMs: [8_000, 500, 500] }

test('what a subscription says counts from the moment its writer has returned', { skip, concurrency: 10 }, async (t) => {
  const pipeline = await openPipeline(t, { tierPartitions: 2, tiersMs: [500, 1_000, 2_000] })
  const { deliveries } = await pipeline.startAll()
  const endOf = async (eventId: string) => (await pipeline.attempts()).find((one) => one.eventId === eventId && one.state !== 'waiting')
  const untilEnd = (eventId: string) => until(() => endOf(eventId), { deadlineMs: patienceMs, intervalMs: 300, message: `the end of ${eventId}` })
  const deadLetterOf = async (eventId: string) => (await pipeline.deadLetters()).filter(({ delivery }) => delivery.eventId === eventId)

  await Promise.all([
    t.test('an event sent after create returned reaches it, twenty times in a row', async (t) => {
      const receiver = await startReceiver(t)
      for (let turn = 0; turn < 20; turn += 1) {
        await pipeline.subscribe(`${receiver.url}/${turn}`, { eventTypes: [`created.${turn}`] })
        await pipeline.send([{ id: `created_${turn}`, type: `created.${turn}` }])
      }
      await receiver.waitForRequests(20, patienceMs)
      const tally = tallyOf(receiver.requests)
      assert.deepEqual([tally.events.size, tally.repeats], [20, 0])
    }),

    t.test('URL and secret changed while a retry waits: the next attempt goes to the new URL, signed with the new secret', async (t) => {
      const before = await startReceiver(t, () => ({ status: 500 }))
      const after = await startReceiver(t)
      const { id } = await pipeline.subscribe(before.url, { eventTypes: ['moved'], secret: 'whsec_the-old-secret-of-a-subscription', policy: longWait })
      await pipeline.send([{ id: 'moved_1', type: 'moved' }])
      await before.waitForRequests(1, patienceMs)
      await pipeline.update(id, { url: after.url, secret: 'whsec_the-new-secret-of-a-subscription' })
      assert.equal(after.requests.length, 0, 'the retry still waits')
      const [request] = await after.waitForRequests(1, patienceMs)
      const [first, second] = [readRequest(before.requests[0]!), readRequest(request!)]
      assert.deepEqual([second.attempt, second.deliveryId], [2, first.deliveryId])
      assert.deepEqual(second.request.body, first.request.body)
      assert.ok(isSignedBy(first, 'whsec_the-old-secret-of-a-subscription') && isSignedBy(second, 'whsec_the-new-secret-of-a-subscription'))
      assert.equal((await untilEnd('moved_1')).state, 'success')
      assert.deepEqual([before.requests.length, after.requests.length], [1, 1])
    }),

    t.test('deleted while a retry waits: cancelled, no dead letter', async (t) => {
      const receiver = await startReceiver(t, () => ({ status: 500 }))
      const { id } = await pipeline.subscribe(receiver.url, { eventTypes: ['deleted'], policy: longWait })
      await pipeline.send([{ id: 'deleted_1', type: 'deleted' }])
      await receiver.waitForRequests(1, patienceMs)
      await pipeline.remove(id)
      const end = await untilEnd('deleted_1')
      assert.deepEqual([end.state, end.reason, end.attempt], ['cancelled', 'deleted', 1])
      assert.equal(receiver.requests.length, 1)
      assert.deepEqual(await deadLetterOf('deleted_1'), [])
    }),

    t.test('disabled while a retry waits: a dead letter that says so, and nothing more is routed', async (t) => {
      const receiver = await startReceiver(t, () => ({ status: 500 }))
      const { id } = await pipeline.subscribe(receiver.url, { eventTypes: ['disabled'], policy: longWait })
      await pipeline.send([{ id: 'disabled_1', type: 'disabled' }])
      await receiver.waitForRequests(1, patienceMs)
      await pipeline.update(id, { state: 'disabled' })
      await pipeline.send([{ id: 'disabled_2', type: 'disabled' }])
      const end = await untilEnd('disabled_1')
      assert.deepEqual([end.state, end.reason], ['dlq', 'disabled'])
      const [dead] = await deadLetterOf('disabled_1')
      assert.deepEqual([dead?.reason, dead?.delivery.attemptsMade], ['disabled', 1])
      assert.equal(receiver.requests.length, 1)
      assert.equal(await endOf('disabled_2'), undefined)
    }),

    t.test('paused while a retry waits: nothing is sent until it is resumed, then all of it', async (t) => {
      const receiver = await startReceiver(t, (request) => ({ status: readRequest(request).attempt === 1 ? 500 : 200 }))
      const { id } = await pipeline.subscribe(receiver.url, { eventTypes: ['paused'], policy: { ...noPolicy, scheduleMs: [3_000, 500, 500] } })
      await pipeline.send([{ id: 'paused_1', type: 'paused' }])
      await receiver.waitForRequests(1, patienceMs)
      await pipeline.update(id, { state: 'paused' })
      const before = receiver.requests.length
      await pipeline.send([{ id: 'paused_2', type: 'paused' }])
      await until(async () => await pipeline.metric(deliveries, 'posthouse_deliveries_parked_total', { reason: 'paused' }) >= 3, { deadlineMs: patienceMs, intervalMs: 100 })
      assert.equal(receiver.requests.length, before)
      await pipeline.update(id, { state: 'active' })
      const ends = await Promise.all([untilEnd('paused_1'), untilEnd('paused_2')])
      assert.deepEqual(ends.map(({ state }) => state), ['success', 'success'])
      assert.deepEqual(receiver.requests.map(readRequest).map(({ eventId, attempt }) => `${eventId} ${attempt}`).toSorted(), ['paused_1 1', 'paused_1 2', 'paused_2 1', 'paused_2 2'])
    }),

    t.test('gone while a retry waits: what was routed before is a dead letter, what comes after is cancelled, written again it lives', async (t) => {
      const receiver = await startReceiver(t, (request) => ({ status: readRequest(request).eventId === 'gone_2' ? 410 : 500 }))
      const { id } = await pipeline.subscribe(receiver.url, { eventTypes: ['gone'], policy: longWait })
      await pipeline.send([{ id: 'gone_1', type: 'gone' }])
      await receiver.waitForRequests(1, patienceMs)
      await pipeline.send([{ id: 'gone_2', type: 'gone' }])
      assert.deepEqual([(await untilEnd('gone_2')).reason, (await deadLetterOf('gone_2')).length], ['gone', 1])
      await pipeline.send([{ id: 'gone_3', type: 'gone' }])
      const third = await untilEnd('gone_3')
      assert.deepEqual([third.state, third.reason], ['cancelled', 'gone'])
      const first = await untilEnd('gone_1')
      assert.deepEqual([first.state, first.reason, first.attempt], ['permanent_failure', 'gone', 1])
      assert.deepEqual((await deadLetterOf('gone_1')).map(({ reason }) => reason), ['gone'])
      assert.equal(receiver.requests.length, 2)
      receiver.script(() => ({}))
      await pipeline.update(id, { description: 'it is back' })
      await pipeline.send([{ id: 'gone_4', type: 'gone' }])
      assert.equal((await untilEnd('gone_4')).state, 'success')
    }),

    t.test('429 with Retry-After: nothing before the quiet ends, then one after the other', async (t) => {
      const quietMs = 4_000
      const waiting = 12
      const receiver = await startReceiver(t, () => ({ status: 429, headers: { 'retry-after': String(quietMs / 1_000) } }))
      await pipeline.subscribe(receiver.url, { eventTypes: ['quiet'] })
      await pipeline.send([{ id: 'quiet_0', type: 'quiet' }])
      const [asked] = await receiver.waitForRequests(1, patienceMs)
      receiver.script(() => ({}))
      // The throttle is known before the attempt is written.
      await until(async () => (await pipeline.attempts()).some(({ eventId }) => eventId === 'quiet_0'), { deadlineMs: patienceMs })
      await pipeline.send(Array.from({ length: waiting }, (_, n) => ({ id: `quiet_${n + 1}`, type: 'quiet' })))
      await receiver.waitForRequests(waiting + 2, patienceMs)
      const later = receiver.requests.slice(1).map(({ receivedAt }) => receivedAt - asked!.receivedAt).toSorted((a, b) => a - b)
      t.diagnostic(`after a quiet of ${quietMs} ms: ${later.join(' ')}`)
      assert.ok(later[0]! >= quietMs, `one came ${quietMs - later[0]!} ms before the quiet ended`)
      // With so few that waited the line lets one go a second; none is early, so the last cannot come before its turn.
      assert.ok(later.at(-1)! >= quietMs + (waiting - 2) * 1_000, `the last came ${later.at(-1)} ms after the 429`)
    }),

    t.test('events are read whatever their batches are compressed with, and sent byte for byte', async (t) => {
      const receiver = await startReceiver(t)
      await pipeline.subscribe(receiver.url, { eventTypes: ['packed'] })
      const all: readonly CompressionName[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
      const fields = { text: 'abc'.repeat(1_000), weight: 136.0 }
      for (const compression of all) {
        await pipeline.send(Array.from({ length: 5 }, (_, n) => ({ id: `packed_${compression}_${n}`, type: 'packed', fields })), { compression })
      }
      await receiver.waitForRequests(all.length * 5, patienceMs)
      assert.deepEqual(receiver.requests.map(({ body }) => body.toString()).toSorted(), all.flatMap((compression) => Array.from({ length: 5 }, (_, n) =>
        JSON.stringify({ id: `packed_${compression}_${n}`, type: 'packed', created: 1_548_892_800, data: fields }))).toSorted())
    }),
  ])
})
