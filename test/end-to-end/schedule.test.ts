import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { isSignedBy, readRequest } from './received.ts'

const { skip } = kafkaForTests()

/** From the due time to the request: polls, hops and a busy machine. Whether the due time itself is right is checked to the ms. */
const slackMs = 10_000

test('an endpoint that is down gets the eight attempts of the schedule, then there is one dead letter', { skip }, async (t) => {
  const scheduleMs = [300, 700, 500, 1_100, 400, 1_500, 2_000]
  const pipeline = await openPipeline(t, { scheduleMs })
  const receiver = await startReceiver(t, () => ({ status: 503, body: 'down' }))
  const { deliveries } = await pipeline.startAll()
  const subscription = await pipeline.subscribe(receiver.url, { secret: 'whsec_a-secret-of-the-schedule' })
  await pipeline.send([{ id: 'evt_down', fields: { weight: 136.0, text: 'ü\u2028' } }])

  await until(async () => await pipeline.count(pipeline.topics.dlq) > 0, { deadlineMs: patienceMs, intervalMs: 50, message: () => `a dead letter (${receiver.requests.length} requests came)` })
  await pipeline.untilQuiet()
  const received = receiver.requests.map(readRequest)
  assert.deepEqual(received.map(({ attempt }) => attempt), [1, 2, 3, 4, 5, 6, 7, 8])
  assert.equal(new Set(received.map(({ deliveryId }) => deliveryId)).size, 1)
  assert.equal(new Set(received.map(({ request }) => request.body.toString('hex'))).size, 1)
  for (const one of received) {
    assert.ok(isSignedBy(one, 'whsec_a-secret-of-the-schedule'), `the signature of attempt ${one.attempt}`)
    assert.equal(one.request.headers['idempotency-key'], one.deliveryId)
    const agedMs = one.request.receivedAt - one.signedAt * 1_000
    assert.ok(agedMs >= 0 && agedMs < slackMs, `attempt ${one.attempt} was signed ${agedMs} ms before it came`)
  }

  const attempts = (await pipeline.attempts()).toSorted((a, b) => a.attempt - b.attempt)
  assert.deepEqual(attempts.map(({ attempt, state }) => `${attempt} ${state}`), [...[1, 2, 3, 4, 5, 6, 7].map((attempt) => `${attempt} waiting`), '8 dlq'])
  for (const [index, delayMs] of scheduleMs.entries()) {
    const [one, next] = [received[index]!, received[index + 1]!]
    const gapMs = next.request.receivedAt - one.request.receivedAt
    t.diagnostic(`wait ${index + 1}: ${delayMs} ms scheduled, ${gapMs} ms between the requests`)
    assert.ok(gapMs >= delayMs, `attempt ${index + 2} came ${gapMs} ms after the one before, ${delayMs} ms are scheduled`)
    assert.ok(gapMs <= delayMs * 1.1 + slackMs, `attempt ${index + 2} came ${gapMs} ms after the one before, ${delayMs} ms are scheduled`)
    const { startedAt, durationMs, nextDueAt } = attempts[index]!
    const waitMs = nextDueAt! - (startedAt + durationMs)
    // Start, duration and due time are each rounded to a ms.
    assert.ok(waitMs >= delayMs - 2 && waitMs <= delayMs * 1.1 + 3, `attempt ${index + 2} was due ${waitMs} ms after the one before, ${delayMs} ms are scheduled`)
  }

  const [dead, ...more] = await pipeline.deadLetters()
  assert.equal(more.length, 0)
  assert.deepEqual([dead?.reason, dead?.state, dead?.lastStatus, dead?.delivery.id], ['exhausted', 'dlq', 503, received[0]?.deliveryId])
  assert.deepEqual(dead?.delivery.attempts.map(({ attempt, error }) => `${attempt} ${error}`), [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => `${attempt} http_503`))
  assert.deepEqual(dead?.delivery.body, received[0]?.request.body)
  assert.equal(dead?.subscription?.host, new URL(subscription.url).host)
  assert.equal(await pipeline.metric(deliveries, 'posthouse_dead_letters_total', { reason: 'exhausted' }), 1)
})
