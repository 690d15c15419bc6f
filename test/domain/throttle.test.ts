import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createThrottle } from '../../shared/domain/throttle.ts'

/** The most that are due within any one second. */
function mostInASecond(dueAts: readonly number[]): number {
  let most = 0
  let from = 0
  dueAts.forEach((dueAt, index) => {
    while (dueAts[from]! <= dueAt - 1000) from += 1
    most = Math.max(most, index - from + 1)
  })
  return most
}

test('the quiet lasts until the latest end asked for', () => {
  const throttle = createThrottle()
  const asked = { recentRatePerSecond: 20, heldCount: 10 }
  assert.deepEqual([throttle.throttledUntil, throttle.isThrottled(0)], [null, false])
  assert.equal(throttle.throttle({ now: 1000, throttleMs: 60_000, ...asked }), true)
  assert.equal(throttle.throttle({ now: 2000, throttleMs: 5000, ...asked }), false)
  assert.equal(throttle.throttledUntil, 61_000)
  assert.equal(throttle.throttle({ now: 1900, throttleMs: 60_000, ...asked }), false, 'not worth a record of its own')
  assert.equal(throttle.throttle({ now: 2100, throttleMs: 60_000, recentRatePerSecond: 1, heldCount: 0 }), true, 'over a second later than written')
  assert.deepEqual([throttle.isThrottled(62_099), throttle.isThrottled(62_100)], [true, false])
  assert.equal(throttle.ratePerSecond, 20, 'the rate before the quiet, not in it')
  assert.equal(throttle.throttle({ now: 70_000, throttleMs: 0, ...asked }), false)
  assert.equal(throttle.throttle({ now: 70_000, throttleMs: 1, ...asked }), true)
})

test('the rate is bounded, and one who takes over goes on with it', () => {
  const rateAfter = (recentRatePerSecond: number | null) => {
    const throttle = createThrottle()
    throttle.throttle({ now: 0, throttleMs: 10, recentRatePerSecond, heldCount: 1 })
    return throttle.ratePerSecond
  }
  assert.deepEqual([0, 7, 1e6, null].map(rateAfter), [1, 7, 1000, 50])
  const restored = createThrottle({ throttledUntil: 5000, throttleRatePerSecond: 2 })
  assert.deepEqual([restored.isThrottled(4999), restored.throttledUntil, restored.ratePerSecond], [true, 5000, 2])
  assert.deepEqual([restored.placeInLine(0), restored.placeInLine(0)], [5000, 6000])
  assert.deepEqual([createThrottle({ throttledUntil: null, throttleRatePerSecond: null }).ratePerSecond], [null])
})

/** 500 deliveries to one endpoint all meet 503 with Retry-After 60 within a second. */
test('none comes back before the end, and no second holds more than a tenth', () => {
  const throttle = createThrottle()
  const dueAts: number[] = []
  for (let i = 0; i < 500; i += 1) {
    throttle.throttle({ now: i * 2, throttleMs: 60_000, recentRatePerSecond: 400, heldCount: 500 - i })
    dueAts.push(throttle.placeInLine(i * 2))
  }
  dueAts.forEach((dueAt, i) => assert.ok(dueAt >= i * 2 + 60_000))
  assert.ok(mostInASecond(dueAts) <= 50, `${mostInASecond(dueAts)} of 500 in one second`)
  assert.ok(dueAts.at(-1)! < 60_000 + 20_000, 'and none waits for much longer than that takes')
})

test('whatever the line and the rate, places only go forward, and a second holds a tenth and the rate at most', () => {
  const lines = fc.record({
    count: fc.integer({ min: 1, max: 3000 }), knownShare: fc.double({ min: 0, max: 1, noNaN: true }), rate: fc.option(fc.integer({ min: 0, max: 5000 })),
  })
  fc.assert(fc.property(lines, ({ count, knownShare, rate }) => {
    const throttle = createThrottle()
    throttle.throttle({ now: 0, throttleMs: 30_000, recentRatePerSecond: rate, heldCount: Math.floor(count * knownShare) })
    const dueAts = Array.from({ length: count }, () => throttle.placeInLine(10))
    assert.equal(dueAts[0], 30_000)
    dueAts.forEach((dueAt, i) => assert.ok(i === 0 || dueAt > dueAts[i - 1]!))
    const most = mostInASecond(dueAts)
    assert.ok(most <= count / 10 + 1, `${most} of ${count}`)
    assert.ok(most <= throttle.ratePerSecond! + 1)
    // The pace grows with the line: an hour is never needed where the rate would allow for less.
    if (rate !== null && rate >= count / 10) assert.ok(dueAts.at(-1)! <= 30_000 + 90_000, `${dueAts.at(-1)!}`)
  }), { numRuns: 60 })
})

test('a quiet made longer does not put later ones on top of earlier ones', () => {
  const throttle = createThrottle()
  throttle.throttle({ now: 0, throttleMs: 1000, recentRatePerSecond: 100, heldCount: 120 })
  const first = Array.from({ length: 120 }, () => throttle.placeInLine(0))
  throttle.throttle({ now: 500, throttleMs: 1000, recentRatePerSecond: 100, heldCount: 0 })
  assert.ok(throttle.placeInLine(500) > first.at(-1)!)
  throttle.throttle({ now: 500, throttleMs: 600_000, recentRatePerSecond: 100, heldCount: 0 })
  assert.equal(throttle.placeInLine(500), 600_500)
})
