import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createDueQueue } from '../../shared/domain/due-queue.ts'

test('the earliest due comes first, and of those due together the first to come; never early', () => {
  const steps = fc.array(fc.record({ kind: fc.constantFrom('push', 'push', 'push', 'pop', 'due', 'lose'), at: fc.nat(20) }), { maxLength: 200, size: 'max' })
  fc.assert(fc.property(steps, (run) => {
    type Item = { dueAt: number; order: number }
    const queue = createDueQueue<Item>()
    let model: Item[] = []
    run.forEach(({ kind, at }, order) => {
      if (kind === 'push') {
        const item = { dueAt: at, order }
        queue.push(at, item)
        model.push(item)
        model.sort((a, b) => a.dueAt - b.dueAt || a.order - b.order)
      } else if (kind === 'pop') {
        assert.equal(queue.pop(), model.shift())
      } else if (kind === 'due') {
        const isDue = model.length > 0 && model[0]!.dueAt <= at
        assert.equal(queue.popDue(at), isDue ? model.shift() : undefined)
      } else {
        const isLost = (item: Item) => item.order % 4 === at % 4
        const byOrder = (a: Item, b: Item) => a.order - b.order
        assert.deepEqual(queue.removeWhere(isLost).sort(byOrder), model.filter(isLost).sort(byOrder))
        model = model.filter((item) => !isLost(item))
      }
      assert.equal(queue.size, model.length)
      assert.equal(queue.peek(), model[0])
      assert.equal(queue.nextDueAt, model[0]?.dueAt ?? null)
    })
  }))
})

test('a due time that is not a number is refused: it would never come up', () => {
  assert.throws(() => createDueQueue<string>().push(Number.NaN, 'x'), /due time is not a number/)
})
