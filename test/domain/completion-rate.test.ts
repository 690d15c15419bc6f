import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createCompletionRate } from '../../shared/domain/completion-rate.ts'

/** Completes one each `everyMs` from `from` to `to`. */
function complete(rate: ReturnType<typeof createCompletionRate>, from: number, to: number, everyMs: number): void {
  for (let at = from + everyMs; at <= to; at += everyMs) rate.completed(at)
}

test('the rate is not known before a second of backlog, and right after it', () => {
  fc.assert(fc.property(fc.constantFrom(1, 2, 10, 50, 100), fc.integer({ min: 0, max: 2 ** 41 }), (everyMs, from) => {
    const rate = createCompletionRate()
    assert.equal(rate.ratePerSecond(from), null)
    complete(rate, from, from + 500, everyMs)
    rate.setBacklog(true, from + 500)
    complete(rate, from + 500, from + 1400, everyMs)
    assert.equal(rate.ratePerSecond(from + 1499), null)
    complete(rate, from + 1400, from + 4000, everyMs)
    const measured = rate.ratePerSecond(from + 4000)!
    assert.ok(Math.abs(measured * everyMs - 1000) <= 60, `${measured} per second with one each ${everyMs} ms`)
  }))
})

test('an endpoint that hangs is at 0 after its first second, and one that starts to hang within some', () => {
  const hanging = createCompletionRate()
  hanging.setBacklog(true, 5000)
  assert.equal(hanging.ratePerSecond(6000), 0)
  const stalls = createCompletionRate()
  stalls.setBacklog(true, 0)
  complete(stalls, 0, 10_000, 5)
  assert.ok(stalls.ratePerSecond(10_000)! > 190)
  assert.ok(stalls.ratePerSecond(16_000)! < 15)
})

test('time without a backlog does not count, until it is long and all is forgotten', () => {
  const rate = createCompletionRate()
  rate.setBacklog(true, 0)
  complete(rate, 0, 5000, 10)
  rate.setBacklog(false, 5000)
  complete(rate, 5000, 30_000, 5000)
  const before = rate.ratePerSecond(30_000)!
  assert.ok(before > 95 && before < 105, `${before}`)
  rate.setBacklog(true, 30_000)
  assert.equal(rate.ratePerSecond(30_000), before)
  rate.setBacklog(false, 30_000)
  rate.setBacklog(true, 90_001)
  assert.equal(rate.ratePerSecond(90_001), null)
  assert.equal(rate.ratePerSecond(91_001), 0)
})
