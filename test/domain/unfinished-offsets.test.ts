import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createUnfinishedOffsets } from '../../shared/domain/unfinished-offsets.ts'

/** Bursts of adds and removes, so that the array is packed, grown and emptied. */
test('it holds what was added and not removed, through packing and growing', () => {
  const bursts = fc.array(fc.record({ add: fc.nat(150), step: fc.integer({ min: 1, max: 3 }), removeFrom: fc.nat(99), remove: fc.nat(200) }), { maxLength: 30, size: 'max' })
  fc.assert(fc.property(bursts, (run) => {
    const offsets = createUnfinishedOffsets()
    const model: number[] = []
    let next = 0
    for (const { add, step, removeFrom, remove } of run) {
      for (let i = 0; i < add; i += 1) {
        offsets.add(next)
        model.push(next)
        next += step
      }
      for (const offset of model.splice(Math.floor((model.length * removeFrom) / 100), remove)) {
        assert.equal(offsets.remove(offset), true)
        assert.equal(offsets.remove(offset), false)
      }
      assert.equal(offsets.count, model.length)
      assert.equal(offsets.lowest, model[0] ?? null)
      const runs: number[] = []
      model.forEach((offset, index) => {
        const end = model[index + 1] ?? next
        if (end > offset + 1) runs.push(offset + 1, end)
      })
      assert.deepEqual(offsets.runsBetween(next, 4096), runs)
      const held = new Set(model)
      for (let offset = 0; offset < next; offset += 7) assert.equal(offsets.has(offset), held.has(offset))
    }
  }), { numRuns: 60 })
})
