import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { adaptiveFactor, seededDraw, waitMs } from '../../shared/domain/backoff.ts'
import { defaultPolicy, jitterKinds, noPolicy, plannedDelayMs, resolvePolicy, type JitterKind, type Policy } from '../../shared/domain/policy.ts'
import { worstCaseMs } from '../../shared/domain/timetable.ts'

const [m, h] = [60_000, 3_600_000]
const exponential = resolvePolicy({ ...noPolicy, strategy: 'exponential', adaptive: false }, defaultPolicy)
const seed = (n: number, attempt = 1) => ({ deliveryId: `del_${n}`, replay: 0, attempt })
const waitsOf = (policy: Policy, attemptsMade: number, lastWaitMs = 0, health = 0.7) =>
  Array.from({ length: 2_000 }, (_, n) => waitMs({ policy, attemptsMade, lastWaitMs, health, seed: seed(n, attemptsMade) }))

/** Checks bounds, and that the draws fill the range evenly: tenths of it hold about a tenth each. */
function assertEven(waits: number[], from: number, to: number): void {
  const tenths = Array.from({ length: 10 }, () => 0)
  for (const wait of waits) {
    assert.ok(wait >= from && wait <= to, `${wait} is not from ${from} to ${to}`)
    tenths[Math.min(9, Math.floor(((wait - from) / (to - from)) * 10))]! += 1
  }
  for (const count of tenths) assert.ok(count > waits.length / 20 && count < waits.length / 5, `uneven: ${tenths.join(' ')}`)
}

test('the adaptive factor changes above 0.9 and above 0.5', () => {
  assert.deepEqual([1, 0.91, 0.9, 0.51, 0.5, 0, Number.NaN].map(adaptiveFactor), [0.5, 0.5, 1, 1, 2, 2, 2])
})

test('draws are the same in every process and differ by delivery, replay, attempt and purpose', () => {
  // Computed apart from this code, in another language.
  assert.equal(seededDraw({ deliveryId: 'del_a', replay: 0, attempt: 1 }, 'wait'), 0.142022614792379)
  const draws = [
    seededDraw({ deliveryId: 'del_a', replay: 0, attempt: 1 }, 'wait'), seededDraw({ deliveryId: 'del_b', replay: 0, attempt: 1 }, 'wait'),
    seededDraw({ deliveryId: 'del_a', replay: 1, attempt: 1 }, 'wait'), seededDraw({ deliveryId: 'del_a', replay: 0, attempt: 2 }, 'wait'),
    seededDraw({ deliveryId: 'del_a', replay: 0, attempt: 1 }, 'other'),
  ]
  assert.equal(new Set(draws).size, draws.length)
})

test('additive: the standard schedule plus up to 10 %', () => {
  for (const [index, delay] of defaultPolicy.scheduleMs.entries()) assertEven(waitsOf(defaultPolicy, index + 1), delay, delay * 1.1)
  assertEven(waitsOf({ ...defaultPolicy, adaptive: true }, 1, 0, 0.95), m / 2, m * 0.55)
  assertEven(waitsOf({ ...defaultPolicy, adaptive: true }, 7, 0, 0.1), 96 * h, 105.6 * h)
  assertEven(waitsOf(defaultPolicy, 1, 0, 0.1), m, 1.1 * m)
})

test('additive: exponential doubles, and at the cap the jitter goes below it', () => {
  assertEven(waitsOf(exponential, 1), m, 1.1 * m)
  assertEven(waitsOf(exponential, 5), 16 * m, 17.6 * m)
  assertEven(waitsOf(exponential, 12), 21.6 * h, 24 * h)
  assertEven(waitsOf({ ...exponential, adaptive: true }, 3, 0, 0.1), 8 * m, 8.8 * m)
  for (const attemptsMade of [64, 1100, 2 ** 53]) assertEven(waitsOf(exponential, attemptsMade), 21.6 * h, 24 * h)
})

test('additive: just below the cap nobody waits exactly the cap', () => {
  const waits = waitsOf({ ...exponential, maxMs: 8.4 * m }, 4)
  assert.ok(Math.max(...waits) <= 8.4 * m && Math.min(...waits) >= 0.9 * 8 * m)
  const most = Math.max(...Object.values(Object.groupBy(waits, String)).map((same) => same!.length))
  assert.ok(most < waits.length / 100, `${most} waits are the same`)
})

test('full, equal and decorrelated replace the delay', () => {
  const jitter = (kind: JitterKind) => ({ ...exponential, jitter: kind })
  assertEven(waitsOf(jitter('full'), 3), 0, 4 * m)
  assertEven(waitsOf(jitter('equal'), 3), 2 * m, 4 * m)
  assertEven(waitsOf(jitter('full'), 100), 0, 24 * h)
  assertEven(waitsOf({ ...defaultPolicy, jitter: 'equal' }, 4), h, 2 * h)
  assertEven(waitsOf(jitter('decorrelated'), 1), m, 3 * m)
  assertEven(waitsOf(jitter('decorrelated'), 4, 10 * m), m, 30 * m)
  const capped = waitsOf({ ...jitter('decorrelated'), maxMs: 10 * m }, 4, 10 * m)
  assert.ok(Math.max(...capped) < 10 * m, 'no herd at the cap')
})

test('a wait is whole, the same for the same seed, and within what is published for the policy', () => {
  const policy = fc.record({
    strategy: fc.constantFrom('standard' as const, 'exponential' as const), jitter: fc.constantFrom(...jitterKinds), adaptive: fc.boolean(),
    baseMs: fc.integer({ min: 1, max: 2 * h }), maxMs: fc.integer({ min: 2 * h, max: 48 * h }),
    scheduleMs: fc.array(fc.integer({ min: 1, max: 48 * h }), { minLength: 1, maxLength: 9 }),
  }).map((fields): Policy => ({ ...defaultPolicy, ...fields, maxAttempts: fields.scheduleMs.length + 1 }))
  const health = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(policy, health, fc.string(), (policy, health, deliveryId) => {
      let [total, lastWaitMs] = [0, 0]
      for (let attempt = 1; attempt < policy.maxAttempts; attempt += 1) {
        const input = { policy, attemptsMade: attempt, lastWaitMs, health, seed: { deliveryId, replay: 0, attempt } }
        const wait = waitMs(input)
        assert.equal(waitMs({ ...input, seed: { ...input.seed } }), wait)
        assert.ok(Number.isSafeInteger(wait) && wait >= 0)
        const delay = plannedDelayMs(policy, attempt, policy.adaptive ? adaptiveFactor(health) : 1)
        if (policy.strategy === 'exponential' || policy.jitter === 'decorrelated') assert.ok(wait <= policy.maxMs)
        if (policy.jitter === 'additive') assert.ok(wait >= Math.floor(delay * 0.9))
        if (policy.jitter === 'additive' && policy.strategy === 'standard') assert.ok(wait >= Math.round(delay))
        total += wait
        lastWaitMs = wait
      }
      assert.ok(total <= worstCaseMs(policy) + policy.maxAttempts, 'the published worst case holds')
    }),
  )
})
