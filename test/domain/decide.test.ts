import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cutUtf8, historyBounds, withAttempt } from '../../shared/domain/attempt-history.ts'
import { deadState, decide, deliveryExpired, type DecideInput, type Decision } from '../../shared/domain/decide.ts'
import { deadLetterReasons, type Delivery, type PastAttempt } from '../../shared/domain/delivery.ts'
import type { Outcome } from '../../shared/domain/outcome.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'

const [s, m, h] = [1_000, 60_000, 3_600_000]
const endedAt = 1_700_000_000_000
const fresh: Delivery = {
  id: 'del_1', replay: 0, subscriptionId: 'sub_1', tenant: null, eventId: 'evt_1', eventType: 'order.paid', routedAt: endedAt - 1000,
  origin: { topic: 'events', partition: 0, offset: 1, timestamp: endedAt - 2000 }, sourceKey: null, sourceHeaders: [], body: Buffer.from('{}'),
  attemptsMade: 0, lastWaitMs: 0, attempts: [],
}
const response = (status: number, more: { retryAfter?: string[]; date?: string; excerpt?: string } = {}): Outcome =>
  ({ kind: 'response', status, retryAfter: more.retryAfter ?? [], date: more.date ?? null, excerpt: more.excerpt ?? null })
const failure = (error: string, phase: 'before_send' | 'sent' = 'before_send'): Outcome => ({ kind: 'failure', error, phase, detail: 'detail' })

function decided(outcome: Outcome, more: Partial<DecideInput> = {}): Decision {
  return decide({
    delivery: fresh, outcome, policy: defaultPolicy, health: 1, startedAt: endedAt - 20, durationMs: 20, endedAt, localFailures: 0, internalFailures: 0, ...more,
  })
}

function retried(outcome: Outcome, more: Partial<DecideInput> = {}): Extract<Decision, { kind: 'retry' }> {
  const decision = decided(outcome, more)
  assert.ok(decision.kind === 'retry', decision.kind)
  return decision
}

test('a 2xx is a success and counts its attempt', () => {
  assert.deepEqual(decided(response(204), { delivery: { ...fresh, attemptsMade: 3 } }), { kind: 'success', delivery: { ...fresh, attemptsMade: 4 } })
})

test('a failure that may pass waits, with the attempt counted and kept', () => {
  const { delivery, attempt, waitMs, dueAt, throttleMs } = retried(response(500, { excerpt: 'oops' }))
  assert.deepEqual(attempt, { attempt: 1, startedAt: endedAt - 20, durationMs: 20, status: 500, failureClass: 'retriable', error: 'http_500', excerpt: 'oops' })
  assert.deepEqual(delivery, { ...fresh, attemptsMade: 1, lastWaitMs: waitMs, attempts: [attempt] })
  assert.ok(waitMs >= m && waitMs <= 1.1 * m)
  assert.equal(dueAt, endedAt + waitMs)
  assert.equal(throttleMs, null)
  assert.deepEqual(retried(failure('reset', 'sent')).attempt.failureClass, 'ambiguous')
  assert.equal(retried(failure('reset', 'sent')).attempt.status, null)
})

test('eight failures are an exhausted delivery: numbers 1 to 8, each wait the next of the schedule', () => {
  let delivery = fresh
  const waits: number[] = []
  for (let made = 1; made <= 7; made += 1) {
    const decision = retried(response(503), { delivery })
    assert.equal(decision.attempt.attempt, made)
    waits.push(decision.waitMs)
    delivery = decision.delivery
  }
  for (const [index, delay] of defaultPolicy.scheduleMs.entries()) assert.ok(waits[index]! >= delay && waits[index]! <= delay * 1.1)
  const last = decided(response(503), { delivery })
  assert.ok(last.kind === 'dead')
  assert.deepEqual([last.state, last.reason, last.error, last.delivery.attemptsMade], ['dlq', 'exhausted', 'http_503', 8])
  assert.deepEqual(last.delivery.attempts.map(({ attempt }) => attempt), [1, 2, 3, 4, 5, 6, 7, 8])
  const beyond = decided(response(503), { delivery: { ...fresh, attemptsMade: 1100 } })
  assert.ok(beyond.kind === 'dead' && beyond.reason === 'exhausted')
})

test('two processes that saw the same failure decide the same', () => {
  assert.deepEqual(decided(response(500)), decided(response(500)))
  const other = retried(response(500), { delivery: { ...fresh, replay: 1 } })
  assert.notEqual(other.waitMs, retried(response(500)).waitMs)
})

test('a permanent failure ends at once', () => {
  for (const outcome of [response(400), response(501), failure('blocked_address'), failure('invalid_url')]) {
    const decision = decided(outcome)
    assert.ok(decision.kind === 'dead')
    assert.deepEqual([decision.state, decision.reason, decision.delivery.attemptsMade], ['permanent_failure', 'permanent_failure', 1])
  }
})

test('410 marks the endpoint as gone, unless the subscription says otherwise', () => {
  const decision = decided(response(410, { excerpt: 'bye' }))
  assert.ok(decision.kind === 'gone')
  assert.deepEqual([decision.error, decision.delivery.attemptsMade, decision.attempt.excerpt], ['http_410', 1, 'bye'])
  retried(response(410), { policy: { ...defaultPolicy, statusClasses: new Map([[410, 'retriable']]) } })
  const permanent = decided(response(410), { policy: { ...defaultPolicy, statusClasses: new Map([[410, 'permanent']]) } })
  assert.equal(permanent.kind, 'gone')
})

test('Retry-After is a floor of the wait, never a shortening', () => {
  assert.ok(retried(response(503, { retryAfter: ['3600'] })).waitMs >= h)
  assert.ok(retried(response(503, { retryAfter: ['3600'] })).waitMs <= 1.1 * h)
  const backoff = retried(response(503)).waitMs
  for (const value of ['0', '-5', 'soon', '120abc', '1e3', '1']) assert.equal(retried(response(503, { retryAfter: [value] })).waitMs, backoff, value)
  const twoMinutes = retried(response(500, { retryAfter: ['Tue, 14 Nov 2023 22:15:20 GMT'] })).waitMs
  assert.ok(twoMinutes >= 120 * s && twoMinutes <= 132 * s, 'a date against the end of the attempt')
  const wrongClock = retried(response(500, { retryAfter: ['Sun Nov  6 08:51:37 1994'], date: 'Sun, 06 Nov 1994 08:49:37 GMT' })).waitMs
  assert.ok(wrongClock >= 120 * s && wrongClock <= 132 * s)
  assert.ok(retried(response(503, { retryAfter: ['999999999'] })).waitMs <= 1.1 * 24 * h)
})

test('deliveries that were all told the same time do not come back at once', () => {
  const waits = Array.from({ length: 500 }, (_, n) => retried(response(500, { retryAfter: ['600'] }), { delivery: { ...fresh, id: `del_${n}` } }).waitMs)
  assert.ok(Math.min(...waits) >= 600 * s)
  const bySecond = Object.values(Object.groupBy(waits, (wait) => Math.floor(wait / 1000))).map((same) => same!.length)
  assert.ok(Math.max(...bySecond) <= 50, `${Math.max(...bySecond)} in one second`)
})

test('429 and 503 with Retry-After also ask for quiet, even where the delivery ends', () => {
  assert.equal(retried(response(429, { retryAfter: ['120'] })).throttleMs, 120 * s)
  assert.equal(retried(response(503, { retryAfter: ['120'] })).throttleMs, 120 * s)
  assert.equal(retried(response(500, { retryAfter: ['120'] })).throttleMs, null)
  assert.equal(retried(response(429, { retryAfter: ['0'] })).throttleMs, null)
  assert.equal(retried(response(429)).throttleMs, null)
  const last = decided(response(429, { retryAfter: ['120'] }), { delivery: { ...fresh, attemptsMade: 7 } })
  assert.ok(last.kind === 'dead' && last.throttleMs === 120 * s)
})

test('our own trouble is no attempt: 1 to 30 seconds, growing', () => {
  for (const error of ['no_file_descriptors', 'no_local_resources', 'shutting_down', 'internal']) {
    const waits = [0, 1, 2, 3, 4, 5, 100, 5000].map((localFailures) => {
      const decision = decided(failure(error, 'sent'), { localFailures, delivery: { ...fresh, attemptsMade: 7 } })
      assert.ok(decision.kind === 'local' && decision.error === error)
      assert.equal(decision.dueAt, endedAt + decision.waitMs)
      return decision.waitMs
    })
    assert.ok(Math.min(...waits) >= s && Math.max(...waits) <= 30 * s && waits[0]! <= 2 * s && waits[7]! >= 15 * s, waits.join(' '))
  }
})

test('our own bug, a third time on one record, is a dead letter; other local trouble never is', () => {
  assert.equal(decided(failure('internal'), { internalFailures: 1, localFailures: 9 }).kind, 'local')
  const third = decided(failure('internal'), { internalFailures: 2, localFailures: 2 })
  assert.deepEqual(third, { kind: 'dead', state: 'dlq', reason: 'internal', delivery: fresh, attempt: null, error: 'internal', throttleMs: null })
  assert.equal(decided(failure('no_file_descriptors'), { internalFailures: 50, localFailures: 50 }).kind, 'local')
})

test('every reason has one state', () => {
  const states = deadLetterReasons.map((reason) => [reason, deadState(reason)])
  assert.deepEqual(Object.fromEntries(states), {
    exhausted: 'dlq', permanent_failure: 'permanent_failure', expired: 'expired', disabled: 'dlq', gone: 'permanent_failure', internal: 'dlq',
  })
})

test('a delivery expires a fixed time after it was routed', () => {
  assert.equal(deliveryExpired({ routedAt: 100 }, 149, 50), false)
  assert.equal(deliveryExpired({ routedAt: 100 }, 150, 50), true)
})

test('the adaptive factor uses the health handed in', () => {
  const policy = { ...defaultPolicy, adaptive: true }
  assert.ok(retried(response(500), { policy, health: 0.95 }).waitMs <= 0.55 * m)
  assert.ok(retried(response(500), { policy, health: 0.1 }).waitMs >= 2 * m)
})

const past = (attempt: number, excerpt: string | null): PastAttempt => ({ attempt, startedAt: 0, durationMs: 0, status: 500, failureClass: 'retriable', error: 'http_500', excerpt })
const excerptBytes = (attempts: readonly PastAttempt[]) => attempts.reduce((sum, { excerpt }) => sum + Buffer.byteLength(excerpt ?? ''), 0)

test('the history keeps the latest attempts, and the newest excerpts whole', () => {
  let history: PastAttempt[] = []
  for (let n = 1; n <= 100; n += 1) history = withAttempt(history, past(n, `${n}`.padEnd(1024, 'x')))
  assert.deepEqual(history.map(({ attempt }) => attempt), Array.from({ length: 20 }, (_, n) => n + 81))
  assert.deepEqual(history.map(({ excerpt }) => excerpt?.length ?? null), [null, null, null, null, ...Array.from({ length: 16 }, () => 1024)])
  assert.deepEqual(withAttempt([past(1, null)], past(2, '')).map(({ excerpt }) => excerpt), [null, ''])
})

test('whatever the receivers answered, the history stays within its bounds and in order', () => {
  const excerpt = fc.option(fc.string({ unit: 'binary', maxLength: 3_000, size: 'max' }))
  fc.assert(
    fc.property(fc.array(excerpt, { minLength: 1, maxLength: 40, size: 'max' }), (excerpts) => {
      const history = excerpts.reduce<PastAttempt[]>((history, text, index) => withAttempt(history, past(index + 1, text)), [])
      assert.ok(excerptBytes(history) <= historyBounds.excerptsBytes)
      assert.deepEqual(history.map(({ attempt }) => attempt), excerpts.map((_, index) => index + 1).slice(-historyBounds.attempts))
      const newest = excerpts.at(-1) ?? null
      assert.equal(history.at(-1)!.excerpt, newest === null ? null : cutUtf8(newest, historyBounds.excerptBytes))
    }),
    { numRuns: 30 },
  )
})

test('text is cut between characters', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 7].map((bytes) => cutUtf8('aé🙄', bytes)), ['', 'a', 'a', 'aé', 'aé', 'aé', 'aé', 'aé🙄'])
  assert.equal(cutUtf8('abc', -1), '')
})
