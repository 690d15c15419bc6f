import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { waitMs, waitRange } from '../../shared/domain/backoff.ts'
import { defaultPolicy, jitterKinds, noPolicy, resolvePolicy, type JitterKind, type Policy } from '../../shared/domain/policy.ts'
import { timeBudget, timetable } from '../../shared/domain/timetable.ts'

const [s, m, h] = [1_000, 60_000, 3_600_000]
const exponential = resolvePolicy({ ...noPolicy, strategy: 'exponential', adaptive: false, maxAttempts: 4, timeoutMs: s }, defaultPolicy)
const begins = (policy: Policy) => timetable(policy).map(({ begins }) => [begins.earliestMs, begins.nominalMs, begins.latestMs].map(Math.round))

test('the default policy: the published times, up to 10 % and the attempts\' own time later', () => {
  const nominal = [0, m, 6 * m, 36 * m, 156 * m, 636 * m, 2076 * m, 4956 * m]
  assert.deepEqual(begins(defaultPolicy), nominal.map((at, index) => [at, at, Math.round(1.1 * at) + index * 30 * s]))
  assert.deepEqual(timeBudget(defaultPolicy), { nominalMs: 4956 * m, bestMs: 4956 * m, worstMs: 5451.6 * m + 8 * 30 * s })
  assert.equal(timetable(defaultPolicy)[0]?.wait, null)
})

test('an adaptive policy may take half or twice as long', () => {
  const { nominalMs, bestMs, worstMs } = timeBudget({ ...defaultPolicy, adaptive: true })
  assert.deepEqual([nominalMs, bestMs, worstMs], [4956 * m, 2478 * m, 10_903.2 * m + 4 * m])
})

test('each jitter, computed by hand', () => {
  const of = (jitter: JitterKind) => begins({ ...exponential, jitter })
  assert.deepEqual(of('additive'), [[0, 0, 0], [m, m, 67 * s], [3 * m, 3 * m, 200 * s], [7 * m, 7 * m, 465 * s]])
  assert.deepEqual(of('full'), [[0, 0, 0], [0, m, 61 * s], [0, 3 * m, 182 * s], [0, 7 * m, 423 * s]])
  assert.deepEqual(of('equal'), [[0, 0, 0], [30 * s, m, 61 * s], [90 * s, 3 * m, 182 * s], [210 * s, 7 * m, 423 * s]])
  // 1 to 3 min (2 on average), then 1 to 9 (3.5), then 1 to 27 (5.75).
  assert.deepEqual(of('decorrelated'), [[0, 0, 0], [m, 2 * m, 181 * s], [2 * m, 5.5 * m, 722 * s], [3 * m, 11.25 * m, 2343 * s]])
})

test('at the cap additive jitter reaches below it, and no wait is longer', () => {
  const capped = { ...exponential, maxMs: 2 * m }
  const { earliestMs, latestMs } = waitRange(capped, 3, null)
  assert.deepEqual([earliestMs, latestMs], [108 * s, 120 * s])
})

test('one attempt has no wait: its budget is its timeout', () => {
  assert.deepEqual(timeBudget({ ...defaultPolicy, maxAttempts: 1, scheduleMs: [] }), { nominalMs: 0, bestMs: 0, worstMs: 30 * s })
})

const policies = fc.record({
  strategy: fc.constantFrom('standard' as const, 'exponential' as const), jitter: fc.constantFrom(...jitterKinds), adaptive: fc.boolean(),
  baseMs: fc.integer({ min: 1, max: 2 * h }), maxMs: fc.integer({ min: 2 * h, max: 48 * h }),
  scheduleMs: fc.array(fc.integer({ min: 1, max: 48 * h }), { minLength: 1, maxLength: 9 }),
}).map((fields): Policy => ({ ...defaultPolicy, ...fields, maxAttempts: fields.scheduleMs.length + 1 }))

test('whatever is drawn and however the endpoint is, attempts begin within their times', () => {
  fc.assert(fc.property(policies, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 9, maxLength: 9 }), fc.string(), (policy, healths, deliveryId) => {
    let [at, lastWaitMs] = [0, 0]
    for (const { attempt, begins } of timetable(policy)) {
      // A ms for each rounded wait.
      assert.ok(at >= begins.earliestMs - attempt && at <= begins.latestMs + attempt, `attempt ${attempt} at ${at}`)
      lastWaitMs = waitMs({ policy, attemptsMade: attempt, lastWaitMs, health: healths[attempt - 1] ?? 1, seed: { deliveryId, replay: 0, attempt } })
      at += lastWaitMs
    }
  }))
})

test('the bounds of a wait are reached: draws come within 2 % of both', () => {
  for (const jitter of jitterKinds) {
    for (const policy of [{ ...defaultPolicy, jitter }, { ...exponential, jitter, maxMs: 9 * m }, { ...exponential, jitter, adaptive: true }]) {
      const range = waitRange(policy, 3, { earliestMs: 5 * m, nominalMs: 5 * m, latestMs: 5 * m })
      const waits = [0, 0.7, 1].flatMap((health) => Array.from({ length: 500 }, (_, n) =>
        waitMs({ policy, attemptsMade: 3, lastWaitMs: 5 * m, health, seed: { deliveryId: `del_${n}`, replay: 0, attempt: 3 } })))
      const slack = 0.02 * range.latestMs
      assert.ok(Math.abs(Math.min(...waits) - range.earliestMs) < slack, `${jitter}: ${Math.min(...waits)} is not near ${range.earliestMs}`)
      assert.ok(Math.abs(Math.max(...waits) - range.latestMs) < slack, `${jitter}: ${Math.max(...waits)} is not near ${range.latestMs}`)
    }
  }
})
