import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { countToPark, parkDelayMs, shouldPark } from '../../shared/domain/parking.ts'

const windowBytes = 8000

test('parked is what lies beyond an eighth of the window and would not be through in a second', () => {
  const holding = { heldCount: 100, heldBytes: 2000, windowBytes, endpointCount: 1, recentRatePerSecond: 10 }
  assert.equal(countToPark(holding), 50)
  assert.equal(shouldPark({ ...holding, heldBytes: 1000 }), false, 'an eighth is allowed')
  assert.equal(shouldPark({ ...holding, recentRatePerSecond: 100 }), false, 'through in a second')
  assert.equal(shouldPark({ ...holding, recentRatePerSecond: 99 }), true)
  assert.equal(countToPark({ ...holding, recentRatePerSecond: 80 }), 20, 'as many stay as are through in a second')
  assert.equal(countToPark({ ...holding, recentRatePerSecond: 0 }), 50)
  assert.equal(shouldPark({ ...holding, recentRatePerSecond: null }), false, 'not known is not slow')
})

test('of many endpoints, those that take minutes have half of the window among them, though none holds an eighth', () => {
  const holding = { heldCount: 90, heldBytes: 900, windowBytes, endpointCount: 10, recentRatePerSecond: 0 }
  assert.equal(countToPark(holding), 50)
  assert.equal(countToPark({ ...holding, recentRatePerSecond: 1 }), 30, 'as many stay as are through in a minute')
  assert.equal(countToPark({ ...holding, recentRatePerSecond: 1.5 }), 0)
  assert.equal(countToPark({ ...holding, heldCount: 40, heldBytes: 400 }), 0, 'an even part of half of it')
  assert.equal(countToPark({ ...holding, recentRatePerSecond: null }), 0)
})

test('after parking the endpoint is within its share, or through in a second, and no more than needed was parked', () => {
  const counts = fc.integer({ min: 1, max: 5000 })
  fc.assert(fc.property(counts, fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 8, max: 1_000_000 }), fc.double({ min: 0, max: 3000, noNaN: true }),
    (heldCount, bytesEach, windowBytes, recentRatePerSecond) => {
      const isTooMuch = (count: number) => count * bytesEach > windowBytes / 8 && count > recentRatePerSecond
      const holding = { heldCount, heldBytes: heldCount * bytesEach, windowBytes, endpointCount: 4, recentRatePerSecond }
      const parked = countToPark(holding)
      assert.equal(shouldPark(holding), isTooMuch(heldCount))
      assert.equal(isTooMuch(heldCount - parked), false)
      if (parked > 0) assert.equal(isTooMuch(heldCount - parked + 1), true)
    }))
})

test('parked for the first delay, then the next, and the last again and again', () => {
  const delays = [10, 60, 300, 1800]
  assert.deepEqual([0, 1, 2, 3, 4, 5, 99].map((times) => parkDelayMs(times, delays)), [10, 10, 60, 300, 1800, 1800, 1800])
  assert.throws(() => parkDelayMs(1, []), /at least one/)
})
