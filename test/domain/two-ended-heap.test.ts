import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { popFirst, popLast, pushEntry, removeEntries } from '../../shared/domain/two-ended-heap.ts'
import type { Ranked } from '../../shared/domain/two-ended-heap.ts'

const inOrder = (a: Ranked, b: Ranked) => a.rank - b.rank || a.sequence - b.sequence

test('first, last and removal agree with a sorted list', () => {
  const steps = fc.array(fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('push' as const), rank: fc.integer({ min: 0, max: 30 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('first' as const, 'last' as const), rank: fc.constant(0) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), rank: fc.integer({ min: 2, max: 9 }) }) },
  ), { maxLength: 200, size: 'max' })
  fc.assert(fc.property(steps, (run) => {
    const heap: Ranked[] = []
    let model: Ranked[] = []
    run.forEach(({ kind, rank }, sequence) => {
      if (kind === 'push') {
        const entry = { rank, sequence }
        pushEntry(heap, entry)
        model = [...model, entry].sort(inOrder)
      } else if (kind === 'first') {
        assert.equal(popFirst(heap), model.shift())
      } else if (kind === 'last') {
        assert.equal(popLast(heap), model.pop())
      } else {
        const isUnwanted = (entry: Ranked) => entry.sequence % rank === 0
        assert.deepEqual(removeEntries(heap, isUnwanted).sort(inOrder), model.filter(isUnwanted))
        model = model.filter((entry) => !isUnwanted(entry))
      }
      assert.equal(heap.length, model.length)
    })
    while (model.length > 0) assert.equal(popFirst(heap), model.shift())
    assert.equal(popFirst(heap), undefined)
    assert.equal(popLast(heap), undefined)
  }), { numRuns: 300 })
})
