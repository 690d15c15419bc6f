import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createSettled, settledKey } from '../../shared/domain/settled.ts'
import { createWindowDuplicates, windowKey } from '../../shared/domain/window-duplicates.ts'

test('a repeat of an unfinished record waits for it and comes back with it', () => {
  const window = createWindowDuplicates<number>()
  assert.equal(window.attach('k', 1), 'first')
  assert.equal(window.attach('k', 2), 'attached')
  assert.equal(window.attach('other', 3), 'first')
  assert.equal(window.attach('k', 4), 'attached')
  assert.deepEqual(window.release('k'), [2, 4])
  assert.deepEqual(window.release('k'), [])
  assert.deepEqual(window.release('other'), [])
  assert.equal(window.attach('k', 5), 'first')
  assert.equal(window.size, 1)
})

test('another attempt, replay or body is another key', () => {
  const hash = settledKey('del_a', Buffer.from('1'))
  const keys = [windowKey(hash, 0, 1), windowKey(hash, 1, 1), windowKey(hash, 0, 2), windowKey(hash, 0, 11), windowKey(settledKey('del_a', Buffer.from('2')), 0, 1)]
  assert.equal(new Set(keys).size, keys.length)
})

/**
 * Copies of a few deliveries arrive; the one that is sent ends as settled, parked (it comes back later) or abandoned (its partition
 * is lost; all its records are read again). Whatever the order, each delivery is sent for real in the end.
 */
test('parked and abandoned ones are never swallowed', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('arrive', 'arrive', 'settle', 'park', 'abandon'), fc.nat(3)), { maxLength: 120, size: 'max' })
  fc.assert(fc.property(steps, (run) => {
    const settled = createSettled({ capacity: 100 })
    let window = createWindowDuplicates<number>()
    const unread: number[] = []
    const inHand = new Map<number, number>()
    const sent = new Set<number>()
    const arrived = new Set<number>()
    const body = Buffer.from('{}')
    const nameOf = (id: number) => settledKey(`del_${id}`, body)
    const read = (id: number) => {
      if (settled.isSettled(nameOf(id), 0, 1)) return assert.ok(sent.has(id), `${id} was dropped as a repeat and never sent`)
      window.attach(windowKey(nameOf(id), 0, 1), id)
      inHand.set(id, (inHand.get(id) ?? 0) + 1)
    }
    const end = (id: number, how: string) => {
      const copies = inHand.get(id)
      if (copies === undefined) return
      inHand.delete(id)
      assert.equal(window.release(windowKey(nameOf(id), 0, 1)).length, copies - 1)
      if (how === 'park') unread.push(id)
      if (how !== 'settle') return
      sent.add(id)
      settled.record(nameOf(id), 0, 1)
    }
    for (const [step, id] of run) {
      if (step === 'arrive') {
        arrived.add(id)
        read(id)
      } else if (step === 'abandon') {
        for (const [lost, copies] of inHand) unread.push(...Array.from({ length: copies }, () => lost))
        inHand.clear()
        window = createWindowDuplicates<number>()
      } else {
        end(id, step)
      }
    }
    for (const id of unread) read(id)
    for (const id of inHand.keys()) end(id, 'settle')
    assert.deepEqual(sent, arrived)
    assert.equal(window.size, 0)
  }))
})
