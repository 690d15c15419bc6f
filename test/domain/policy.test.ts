import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  defaultPolicy, describePolicy, jitterKinds, noPolicy, plannedDelayMs, resolvePolicy, type Policy, type SubscriptionPolicy,
} from '../../shared/domain/policy.ts'
import { nominalMs, worstCaseMs } from '../../shared/domain/timetable.ts'
import { maxTotalMs, policyBounds, policyNotes, validateDefaults, validatePolicy } from '../../shared/domain/policy-check.ts'

const [s, m, h, d] = [1_000, 60_000, 3_600_000, 86_400_000]
const own = (fields: Partial<SubscriptionPolicy>): SubscriptionPolicy => ({ ...noPolicy, ...fields })
const exponential = resolvePolicy(own({ strategy: 'exponential' }), defaultPolicy)

test('the default is the standard schedule: 8 attempts over 82.6 hours', () => {
  assert.deepEqual(resolvePolicy(noPolicy, defaultPolicy), defaultPolicy)
  assert.deepEqual(defaultPolicy.scheduleMs, [m, 5 * m, 30 * m, 2 * h, 8 * h, 24 * h, 48 * h])
  const starts = [0, ...defaultPolicy.scheduleMs.map((_, index) => nominalMs({ ...defaultPolicy, maxAttempts: index + 2 }))]
  assert.deepEqual(starts, [0, m, 6 * m, 36 * m, 156 * m, 636 * m, 2076 * m, 4956 * m])
  assert.deepEqual(validateDefaults(defaultPolicy), [])
  assert.equal(describePolicy(defaultPolicy), '8 attempts after 1m 5m 30m 2h 8h 24h 48h, additive jitter')
})

test('exponential is adaptive unless told otherwise, standard is not', () => {
  assert.equal(exponential.adaptive, true)
  assert.equal(resolvePolicy(own({ strategy: 'exponential', adaptive: false }), defaultPolicy).adaptive, false)
  assert.equal(resolvePolicy(own({ adaptive: true }), defaultPolicy).adaptive, true)
  assert.equal(resolvePolicy(own({ strategy: 'standard' }), exponential).adaptive, false)
  assert.equal(resolvePolicy(noPolicy, { ...defaultPolicy, adaptive: true }).adaptive, true)
  assert.deepEqual([exponential.baseMs, exponential.maxMs, exponential.maxAttempts, exponential.timeoutMs], [m, 24 * h, 8, 30 * s])
})

test('attempts follow the schedule, the schedule follows fewer attempts', () => {
  const attempts = (fields: Partial<SubscriptionPolicy>, defaults = defaultPolicy) => {
    const { maxAttempts, scheduleMs } = resolvePolicy(own(fields), defaults)
    return [maxAttempts, scheduleMs]
  }
  assert.deepEqual(attempts({ scheduleMs: [s, 2 * s] }), [3, [s, 2 * s]])
  assert.deepEqual(attempts({ scheduleMs: [] }), [1, []])
  assert.deepEqual(attempts({ maxAttempts: 3 }), [3, [m, 5 * m]])
  assert.deepEqual(attempts({ maxAttempts: 0 }), [1, []], 'a record that should not have been accepted')
  assert.deepEqual(attempts({ maxAttempts: 20 }), [8, defaultPolicy.scheduleMs], 'a record from before a change of defaults')
  assert.deepEqual(attempts({ strategy: 'standard' }, { ...exponential, maxAttempts: 20, scheduleMs: [s] }), [2, [s]])
  assert.equal(attempts({ strategy: 'exponential', maxAttempts: 20 })[0], 20)
  const sample: Policy = { ...defaultPolicy, scheduleMs: [s, 2 * s, 4 * s], maxAttempts: 4, timeoutMs: s }
  assert.deepEqual(resolvePolicy(noPolicy, sample), sample)
})

test("statuses add to the installation's, and cannot be called our own trouble", () => {
  const defaults: Policy = { ...defaultPolicy, statusClasses: new Map([[404, 'permanent'], [401, 'retriable']]) }
  const policy = resolvePolicy(own({ statusClasses: [{ status: 404, failureClass: 'retriable' }, { status: 403, failureClass: 'local' }] }), defaults)
  assert.deepEqual([...policy.statusClasses], [[404, 'retriable'], [401, 'retriable']])
})

test('planned delays: one indexing rule, a cap, no overflow', () => {
  assert.equal(plannedDelayMs(defaultPolicy, 1, 1), m)
  assert.equal(plannedDelayMs(defaultPolicy, 7, 1), 48 * h)
  assert.equal(plannedDelayMs(defaultPolicy, 7, 2), 96 * h)
  assert.equal(plannedDelayMs(defaultPolicy, 8, 1), 48 * h)
  assert.deepEqual([1, 2, 3, 11, 12].map((made) => plannedDelayMs(exponential, made, 1)), [m, 2 * m, 4 * m, 1024 * m, 24 * h])
  assert.equal(plannedDelayMs(exponential, 1, 0.5), 30 * s)
  for (const made of [64, 1100, 2 ** 31, Number.MAX_SAFE_INTEGER]) assert.equal(plannedDelayMs(exponential, made, 0.5), 24 * h)
})

test('the worst case has every wait at its longest and every attempt at its timeout', () => {
  assert.equal(worstCaseMs(defaultPolicy), Math.round(4956 * m * 1.1) + 8 * 30 * s)
  assert.equal(worstCaseMs({ ...defaultPolicy, adaptive: true }), Math.round(4956 * m * 2.2) + 8 * 30 * s)
  assert.equal(worstCaseMs({ ...defaultPolicy, jitter: 'full' }), 4956 * m + 8 * 30 * s)
  assert.equal(worstCaseMs({ ...exponential, baseMs: h, maxMs: 2 * h, maxAttempts: 4, timeoutMs: s }), 6 * h + 4 * s)
  assert.equal(worstCaseMs({ ...exponential, jitter: 'decorrelated', maxAttempts: 4, timeoutMs: s }), 3 * m + 9 * m + 27 * m + 4 * s)
})

test('a sound policy is accepted', () => {
  const sound: Partial<SubscriptionPolicy>[] = [
    {}, { scheduleMs: [1] }, { scheduleMs: [s, s], maxAttempts: 3 }, { maxAttempts: 1 }, { maxAttempts: 8 }, { timeoutMs: 1_000 }, { timeoutMs: 30_000 },
    { strategy: 'exponential', maxAttempts: 20 }, { strategy: 'exponential', baseMs: h, maxMs: h }, { jitter: 'full', adaptive: true },
    { statusClasses: [{ status: 404, failureClass: 'permanent' }, { status: 301, failureClass: 'permanent' }] },
    { scheduleMs: Array.from({ length: 99 }, () => m) },
  ]
  for (const fields of sound) assert.deepEqual(validatePolicy(own(fields), defaultPolicy), [], JSON.stringify(fields))
})

test('each mistake is named, and all of them at once', () => {
  const mistakes: [Partial<SubscriptionPolicy>, RegExp[]][] = [
    [{ timeoutMs: 999 }, [/timeoutMs must be .* from 1s to 30s/]],
    [{ timeoutMs: 30_001, maxAttempts: 0 }, [/maxAttempts must be .* from 1 to 100/, /timeoutMs/]],
    [{ maxAttempts: 101, strategy: 'exponential' }, [/maxAttempts/]],
    [{ maxAttempts: Number.NaN }, [/maxAttempts must be/]],
    [{ baseMs: 0.5 }, [/baseMs/]],
    [{ baseMs: 2 * d }, [/baseMs \(48h\) is more than maxMs \(24h\)/]],
    [{ maxMs: Number.POSITIVE_INFINITY }, [/maxMs/]],
    [{ scheduleMs: [s, 0, -1] }, [/scheduleMs\[1\]/, /scheduleMs\[2\]/]],
    [{ scheduleMs: Array.from({ length: 100 }, () => s) }, [/at most 99 waits/]],
    [{ scheduleMs: [s], maxAttempts: 3 }, [/maxAttempts 3 needs 2 waits, the schedule has 1/]],
    [{ scheduleMs: [s, s], maxAttempts: 2 }, [/maxAttempts 2 needs 1 waits, the schedule has 2/]],
    [{ maxAttempts: 9 }, [/maxAttempts 9 needs 8 waits, the schedule has 7/]],
    [{ scheduleMs: [s], strategy: 'exponential' }, [/no effect/]],
    [{ statusClasses: [{ status: 204, failureClass: 'permanent' }] }, [/204 is a success/]],
    [{ statusClasses: [{ status: 600, failureClass: 'permanent' }, { status: 404.5, failureClass: 'permanent' }] }, [/600 is not/, /404.5 is not/]],
    [{ statusClasses: [{ status: 404, failureClass: 'local' }, { status: 404, failureClass: 'retriable' }] }, [/must be retriable/, /given twice/]],
    [{ strategy: 'linear' as 'standard', jitter: 'none' as 'full' }, [/strategy must be/, /jitter must be one of additive, full, equal, decorrelated/]],
    [{ scheduleMs: [13 * d] }, [/up to 344h, more than 14d/]],
    [{ strategy: 'exponential', maxAttempts: 100 }, [/more than 14d/]],
  ]
  for (const [fields, expected] of mistakes) {
    const reasons = validatePolicy(own(fields), defaultPolicy)
    assert.equal(reasons.length, expected.length, `${JSON.stringify(fields)}: ${reasons.join('; ')}`)
    for (const [index, reason] of reasons.entries()) assert.match(reason, expected[index]!)
  }
})

test('what a policy says in vain, or will not reach, is noted', () => {
  const notes = (fields: Partial<SubscriptionPolicy>, expiryMs = 14 * d) => policyNotes(own(fields), defaultPolicy, expiryMs)
  for (const fields of [{}, { scheduleMs: [s] }, { strategy: 'exponential' as const, baseMs: s, maxMs: m }, { jitter: 'decorrelated' as const, baseMs: s }]) {
    assert.deepEqual(notes(fields), [], JSON.stringify(fields))
  }
  const cases: [string[], RegExp][] = [
    [notes({ baseMs: s }), /no effect/], [notes({ maxMs: m }), /no effect/], [notes({ scheduleMs: [s], jitter: 'decorrelated' }), /number of waits/],
    [notes({ jitter: 'decorrelated', adaptive: true }), /adaptive has no effect/], [notes({}, 3 * d), /up to 91h, but a delivery is given up after 3d/],
    [notes({ statusClasses: [{ status: 410, failureClass: 'retriable' }] }), /410 is retriable/],
  ]
  for (const [found, expected] of cases) {
    assert.equal(found.length, 1, found.join('; '))
    assert.match(found[0]!, expected)
  }
})

test('a policy in words has what differs', () => {
  const words = (fields: Partial<SubscriptionPolicy>) => describePolicy(resolvePolicy(own(fields), defaultPolicy))
  assert.equal(words({ maxAttempts: 1 }), '1 attempt')
  assert.equal(words({ strategy: 'exponential', jitter: 'full', timeoutMs: 5 * s, statusClasses: [{ status: 404, failureClass: 'permanent' }] }),
    '8 attempts doubling from 1m to at most 24h, full jitter, adaptive, timeout 5s, 404 permanent')
  assert.equal(words({ jitter: 'decorrelated', adaptive: true }), '8 attempts after 1m to three times the last wait, at most 24h, decorrelated jitter')
})

test('an installation cannot have unsound defaults', () => {
  assert.match(validateDefaults({ ...defaultPolicy, maxAttempts: 5 })[0] ?? '', /needs 4 waits/)
  assert.match(validateDefaults({ ...defaultPolicy, baseMs: 25 * h })[0] ?? '', /more than maxMs/)
  assert.match(validateDefaults({ ...defaultPolicy, statusClasses: new Map([[200, 'permanent']]) })[0] ?? '', /success/)
  assert.deepEqual(validateDefaults(exponential), [])
})

test('what is accepted resolves to a policy within its bounds', () => {
  const ms = fc.option(fc.oneof(fc.integer({ min: -1, max: 30 * d }), fc.integer({ min: 1, max: h })))
  const fields = fc.record({
    strategy: fc.constantFrom(null, 'standard' as const, 'exponential' as const),
    scheduleMs: fc.option(fc.array(fc.integer({ min: 0, max: d }), { maxLength: 8 }), { freq: 1 }),
    baseMs: ms, maxMs: ms, maxAttempts: fc.option(fc.integer({ min: 0, max: 101 })), adaptive: fc.option(fc.boolean()),
    jitter: fc.constantFrom(null, ...jitterKinds), timeoutMs: fc.option(fc.integer({ min: 0, max: 31_000 })), statusClasses: fc.constant([]),
  })
  fc.assert(
    fc.property(fields, fc.constantFrom(defaultPolicy, exponential), (fields, defaults) => {
      const policy = resolvePolicy(fields, defaults)
      if (policy.strategy === 'standard') assert.equal(policy.scheduleMs.length, policy.maxAttempts - 1)
      if (validatePolicy(fields, defaults).length > 0) return
      assert.ok(worstCaseMs(policy) <= maxTotalMs)
      assert.ok(nominalMs(policy) <= worstCaseMs(policy))
      assert.ok(policy.baseMs <= policy.maxMs)
      assert.ok(policy.maxAttempts >= 1 && policy.maxAttempts <= policyBounds.maxAttempts.max)
      assert.equal(policy.maxAttempts, fields.maxAttempts ?? policy.maxAttempts, 'what was accepted holds')
    }),
    { numRuns: 500 },
  )
})
