import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'

const offsetOfBrokers = 1_700_000_000_000

test('before the first sample the wall clock is both bounds', () => {
  const time = createBrokerTime({ monotonicNow: () => 5, wallNow: () => 1_000 })
  assert.equal(time.nowForDue(), 1_000)
  assert.equal(time.nowForWait(), 1_000)
  assert.equal(time.skewMs(), 0)
  assert.equal(time.uncertaintyMs(), null)
})

test('the bounds are the smallest and largest offset the samples allow', () => {
  let now = 0
  const time = createBrokerTime({ monotonicNow: () => now, wallNow: () => 9_000 })
  time.sample(100, 130, 10_120)
  time.sample(200, 204, 10_203)
  now = 300
  // Upper: min(10120 + 1 - 100, 10203 + 1 - 200); lower: max(10120 - 130, 10203 - 204).
  assert.equal(time.nowForDue(), 300 + 10_004)
  assert.equal(time.nowForWait(), 300 + 9_999)
  assert.equal(time.uncertaintyMs(), 5)
  assert.equal(time.skewMs(), 300 + 10_001.5 - 9_000)
})

test('never early: whatever the true offset and delays, nowForWait <= broker time <= nowForDue', () => {
  const step = fc.record({
    pauseMs: fc.double({ min: 0, max: 100_000, noNaN: true }),
    beforeStampMs: fc.double({ min: 0, max: 500, noNaN: true }),
    afterStampMs: fc.double({ min: 0, max: 500, noNaN: true }),
  })
  fc.assert(fc.property(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.array(step, { minLength: 1, maxLength: 60 }), (shift, steps) => {
    let now = 0
    const trueOffset = offsetOfBrokers + shift
    const time = createBrokerTime({ monotonicNow: () => now, wallNow: () => 0 })
    for (const { pauseMs, beforeStampMs, afterStampMs } of steps) {
      const sentAt = (now += pauseMs)
      const stampedAt = (now += beforeStampMs)
      now += afterStampMs
      time.sample(sentAt, now, Math.floor(stampedAt + trueOffset))
      // Doubles of this size are exact to about 0.0002 ms.
      assert.ok(time.nowForWait() <= now + trueOffset + 0.01)
      assert.ok(time.nowForDue() >= now + trueOffset - 0.01)
    }
  }), { numRuns: 300 })
})

test('samples older than five minutes no longer count once newer ones are there', () => {
  let now = 0
  const time = createBrokerTime({ monotonicNow: () => now, wallNow: () => 0 })
  time.sample(0, 0, offsetOfBrokers)
  now = 299_000
  time.sample(now, now + 50, offsetOfBrokers + now + 20)
  assert.equal(time.nowForDue(), offsetOfBrokers + now + 1)
  now = 320_000
  time.sample(now, now + 50, offsetOfBrokers + now + 20)
  assert.equal(time.nowForDue(), offsetOfBrokers + now + 21)
  assert.equal(time.nowForWait(), offsetOfBrokers + now - 30)
})

test('the last samples are kept while there are none', () => {
  let now = 0
  const time = createBrokerTime({ monotonicNow: () => now, wallNow: () => 0 })
  time.sample(0, 2, offsetOfBrokers)
  now = 10 * 3_600_000
  assert.equal(time.nowForDue(), offsetOfBrokers + now + 1)
  assert.equal(time.nowForWait(), offsetOfBrokers + now - 2)
})

test('a sample that cannot be (no LogAppendTime, acknowledged before it was sent) is ignored', () => {
  const time = createBrokerTime({ monotonicNow: () => 0, wallNow: () => 7 })
  time.sample(0, 1, -1)
  time.sample(2, 1, offsetOfBrokers)
  time.sample(0, 1, Number.NaN)
  assert.equal(time.nowForDue(), 7)
})
