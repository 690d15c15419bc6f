import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maxRetryAfterMs, parseHttpDate, parseRetryAfterMs } from '../../shared/domain/retry-after.ts'

const receivedAt = Date.UTC(2026, 10, 6, 8, 49, 37)
const read = (value: string, date: string | null = null) => parseRetryAfterMs([value], date, receivedAt)

test('seconds are read, capped at a day', () => {
  assert.equal(read('120'), 120_000)
  assert.equal(read('0'), 0)
  assert.equal(read(' 7 '), 7_000)
  assert.equal(read('007'), 7_000)
  assert.equal(read('86400'), maxRetryAfterMs)
  assert.equal(read('86401'), maxRetryAfterMs)
  assert.equal(read('999999999'), maxRetryAfterMs)
})

test('the three date forms of RFC 9110 are read as GMT', () => {
  for (const form of ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994']) {
    assert.equal(parseHttpDate(form, receivedAt), Date.UTC(1994, 10, 6, 8, 49, 37), form)
    assert.equal(read(form), 0, 'the past is now')
  }
  assert.equal(read('Fri, 06 Nov 2026 08:51:37 GMT'), 120_000)
  assert.equal(read('Friday, 06-Nov-26 08:51:37 GMT'), 120_000)
  assert.equal(read('Fri Nov  6 08:51:37 2026'), 120_000)
  assert.equal(read('Mon Nov 16 08:51:37 2026'), maxRetryAfterMs)
})

test('dates are read the same in every time zone', () => {
  const before = process.env['TZ']
  try {
    for (const zone of ['America/New_York', 'Asia/Tokyo', 'UTC']) {
      process.env['TZ'] = zone
      assert.equal(read('Fri Nov  6 08:51:37 2026'), 120_000, zone)
    }
  } finally {
    if (before === undefined) delete process.env['TZ']
    else process.env['TZ'] = before
  }
})

test('a date is compared with the Date of the same response, so a wrong clock there does no harm', () => {
  assert.equal(read('Sun, 06 Nov 1994 08:51:37 GMT', 'Sun, 06 Nov 1994 08:49:37 GMT'), 120_000)
  assert.equal(read('Fri, 06 Nov 2026 08:51:37 GMT', 'nonsense'), 120_000, 'an unreadable Date is not used')
  assert.equal(read('120', 'Sun, 06 Nov 1994 08:49:37 GMT'), 120_000, 'seconds need no clock')
})

test('a two-digit year more than 50 years ahead lies in the past', () => {
  assert.equal(parseHttpDate('Sunday, 06-Nov-76 08:49:37 GMT', receivedAt), Date.UTC(2076, 10, 6, 8, 49, 37))
  assert.equal(parseHttpDate('Sunday, 06-Nov-77 08:49:37 GMT', receivedAt), Date.UTC(1977, 10, 6, 8, 49, 37))
})

test('what cannot be read is ignored, never taken as now', () => {
  const bad = [
    '', ' ', '-5', '+5', 'soon', '120abc', '1e3', '1.5', '0x10', '120, 240', '1234567890', '١٢٠', 'Infinity', '2026-11-06T08:51:37Z', 'Fri, 6 Nov 2026 08:51:37 GMT',
    'Fri, 06 Nov 2026 08:51:37', 'Fri, 06 Nov 2026 08:51:37 UTC', 'Fri, 06 Nov 2026 08:51:37 +0000', 'fri, 06 nov 2026 08:51:37 gmt', 'Fri, 06 Nov 26 08:51:37 GMT',
    'Fri, 31 Feb 2026 08:51:37 GMT', 'Fri, 00 Nov 2026 08:51:37 GMT', 'Fri, 06 Nov 2026 24:51:37 GMT', 'Fri, 06 Nov 2026 08:60:37 GMT', 'Fri, 06 Nov 2026 08:51:61 GMT',
    'Fri Nov 6 08:51:37 2026', 'Fri, 06-Nov-26 08:51:37 GMT', 'Fri, 06 Nov 2026 08:51:37 GMT, 120',
  ]
  for (const value of bad) assert.equal(read(value), null, value)
  assert.equal(parseRetryAfterMs([], null, receivedAt), null)
})

test('of several headers the longest that can be read counts', () => {
  assert.equal(parseRetryAfterMs(['soon', '120', '60'], null, receivedAt), 120_000)
  assert.equal(parseRetryAfterMs(['60', 'Fri, 06 Nov 2026 08:51:37 GMT'], null, receivedAt), 120_000)
  assert.equal(parseRetryAfterMs(['soon', '-1'], null, receivedAt), null)
})

test('an IMF date written by Date is read back, and the wait stays within its bounds', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }), (date) => {
      const at = Math.floor(date.getTime() / 1000) * 1000
      assert.equal(parseHttpDate(date.toUTCString(), receivedAt), at)
      assert.equal(read(date.toUTCString()), Math.min(Math.max(at - receivedAt, 0), maxRetryAfterMs))
    }),
  )
})

test('any text gives null or a wait from 0 to a day', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.option(fc.string()), (values, date) => {
      const wait = parseRetryAfterMs(values, date, receivedAt)
      assert.ok(wait === null || (wait >= 0 && wait <= maxRetryAfterMs))
    }),
  )
})
