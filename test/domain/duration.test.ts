import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, parseDurationMs } from '../../shared/domain/duration.ts'

test('a duration is one whole number and one unit', () => {
  const cases = { '500ms': 500, '10s': 10_000, '1m': 60_000, '30m': 1_800_000, '2h': 7_200_000, '48h': 172_800_000, '3d': 259_200_000, '0s': 0 }
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseDurationMs(text), ms, text)
})

test('anything else is refused, and the message says how to write it', () => {
  const bad = ['', '10', 's', '1.5h', '-5s', '1h30m', '10 s', ' 10s', '10s\n', '10S', '10sec', '1e3s', '٣s', '9007199254740993ms', '99999999999999d', 'constructor']
  for (const text of bad) assert.throws(() => parseDurationMs(text, 'retention'), /retention .* is not a duration: .*500ms/s, text)
})

test('durations are written in the largest exact unit, with 24h and 48h as hours', () => {
  const cases: [number, string][] = [
    [0, '0s'], [500, '500ms'], [10_000, '10s'], [90_000, '90s'], [60_000, '1m'], [3_600_000, '1h'], [86_400_000, '24h'], [172_800_000, '48h'],
    [259_200_000, '3d'], [262_800_000, '73h'], [61_001, '61001ms'], [-5_000, '-5s'], [0.4, '0s'],
  ]
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text)
  assert.throws(() => formatDuration(Number.NaN), RangeError)
  assert.throws(() => formatDuration(Number.POSITIVE_INFINITY), RangeError)
})

test('what is written is read back exactly', () => {
  fc.assert(fc.property(fc.oneof(fc.maxSafeNat(), fc.nat(2_000).map((n) => n * 3_600_000)), (ms) => parseDurationMs(formatDuration(ms)) === ms))
})
