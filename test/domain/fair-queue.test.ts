import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createFairQueue } from '../../shared/domain/fair-queue.ts'

const always = () => true

function drain<T>(queue: ReturnType<typeof createFairQueue<T>>): T[] {
  const items: T[] = []
  for (let next = queue.next(always); next !== null; next = queue.next(always)) items.push(next.item)
  return items
}

test('endpoints take turns, and each sends what was routed earliest first', () => {
  const queue = createFairQueue<string>()
  queue.push('a', 'a3', 3, 1)
  queue.push('a', 'a1', 1, 1)
  queue.push('a', 'a2', 2, 1)
  queue.push('b', 'b9', 9, 1)
  queue.push('b', 'b9 later', 9, 1)
  queue.push('c', 'c0', 0, 1)
  assert.deepEqual(drain(queue), ['a1', 'b9', 'c0', 'a2', 'b9 later', 'a3'])
  assert.deepEqual([queue.size, queue.bytes, queue.endpointCount], [0, 0, 0])
})

test('an endpoint that may not start is asked once, and again only after unblock', () => {
  const queue = createFairQueue<string>()
  const asked: string[] = []
  const isAllowed = new Set(['b'])
  const canStart = (endpointKey: string) => {
    asked.push(endpointKey)
    return isAllowed.has(endpointKey)
  }
  queue.push('a', 'a1', 1, 1)
  queue.push('b', 'b1', 1, 1)
  queue.push('b', 'b2', 2, 1)
  assert.equal(queue.next(canStart)?.item, 'b1')
  assert.equal(queue.next(canStart)?.item, 'b2')
  queue.push('a', 'a0', 0, 1)
  assert.equal(queue.next(canStart), null)
  assert.deepEqual(asked, ['a', 'b', 'b'])
  isAllowed.add('a')
  assert.equal(queue.next(canStart), null, 'still out of the ring')
  queue.unblock('a')
  queue.unblock('a')
  queue.unblock('nobody')
  assert.deepEqual([queue.next(canStart)?.item, queue.next(canStart)?.item, queue.next(canStart)], ['a0', 'a1', null])
})

test('ten thousand endpoints at their caps cost one question each, not one a pick', () => {
  const queue = createFairQueue<number>()
  for (let i = 0; i < 10_000; i += 1) queue.push(`full-${i}`, i, i, 1)
  for (let i = 0; i < 1000; i += 1) queue.push('free', i, i, 1)
  let questions = 0
  for (let i = 0; i < 1000; i += 1) {
    assert.equal(queue.next((endpointKey) => {
      questions += 1
      return endpointKey === 'free'
    })?.item, i)
  }
  assert.equal(questions, 11_000)
})

test('the youngest of an endpoint are taken, and a lost partition leaves nothing behind', () => {
  const queue = createFairQueue<{ partition: number; id: number }>()
  for (let id = 0; id < 10; id += 1) queue.push(id < 8 ? 'a' : 'b', { partition: id % 2, id }, 100 - id, 10)
  assert.deepEqual([queue.countOf('a'), queue.bytesOf('a'), queue.countOf('b'), queue.bytesOf('none')], [8, 80, 2, 0])
  assert.deepEqual(queue.takeYoungest('a', 3).map(({ item }) => item.id), [0, 1, 2])
  assert.deepEqual(queue.takeYoungest('none', 3), [])
  assert.deepEqual([queue.size, queue.bytes, queue.bytesOf('a')], [7, 70, 50])
  assert.deepEqual(queue.removeWhere(({ partition }) => partition === 0).map(({ item }) => item.id).sort((x, y) => x - y), [4, 6, 8])
  assert.deepEqual(drain(queue).map(({ id }) => id), [7, 9, 5, 3])
  queue.push('a', { partition: 1, id: 77 }, 1, 10)
  assert.equal(queue.takeYoungest('a', 5).length, 1)
  assert.deepEqual([queue.size, queue.bytes, queue.endpointCount, queue.next(always)], [0, 0, 0, null])
})

/** Compared with plain lists; blocked endpoints are unblocked at random, as requests end at random. */
test('no ready endpoint waits for more than one round, and within one the earliest goes first', () => {
  type Item = { endpoint: string; partition: number; routedAt: number; order: number; bytes: number }
  const steps = fc.array(fc.record({
    kind: fc.constantFrom('push', 'push', 'push', 'next', 'next', 'next', 'block', 'unblock', 'youngest', 'lose'),
    endpoint: fc.constantFrom('a', 'b', 'c', 'd', 'e'), number: fc.nat(7),
  }), { maxLength: 250, size: 'max' })
  fc.assert(fc.property(steps, (run) => {
    const queue = createFairQueue<Item>()
    const waiting = new Map<string, Item[]>()
    const isFull = new Set<string>()
    const waitedSince = new Map<string, Set<string>>() // ready endpoint -> those served since it became ready
    const all = () => [...waiting.values()].flat()
    const isReady = (endpoint: string) => (waiting.get(endpoint)?.length ?? 0) > 0 && !isFull.has(endpoint)
    const update = () => {
      for (const endpoint of 'abcde') {
        if (!isReady(endpoint)) waitedSince.delete(endpoint)
        else if (!waitedSince.has(endpoint)) waitedSince.set(endpoint, new Set())
      }
    }
    run.forEach(({ kind, endpoint, number }, order) => {
      const list = waiting.get(endpoint) ?? []
      waiting.set(endpoint, list)
      if (kind === 'push') {
        const item = { endpoint, partition: order % 3, routedAt: number, order, bytes: number + 1 }
        queue.push(endpoint, item, number, number + 1)
        list.push(item)
        list.sort((x, y) => x.routedAt - y.routedAt || x.order - y.order)
      } else if (kind === 'next') {
        const picked = queue.next((key) => !isFull.has(key))
        if (picked === null) {
          assert.ok(!['a', 'b', 'c', 'd', 'e'].some(isReady), 'something was ready')
        } else {
          assert.equal(picked.item, waiting.get(picked.endpointKey)!.shift())
          for (const [other, served] of waitedSince) {
            if (other === picked.endpointKey) continue
            assert.ok(!served.has(picked.endpointKey), `${picked.endpointKey} twice while ${other} waited`)
            served.add(picked.endpointKey)
          }
          waitedSince.delete(picked.endpointKey)
        }
      } else if (kind === 'block') {
        isFull.add(endpoint)
      } else if (kind === 'unblock') {
        isFull.delete(endpoint)
        queue.unblock(endpoint)
      } else if (kind === 'youngest') {
        const taken = queue.takeYoungest(endpoint, number).map(({ item }) => item)
        assert.deepEqual(taken, list.splice(Math.max(0, list.length - number)).toReversed())
      } else {
        const lost = queue.removeWhere((item) => item.partition === number)
        assert.deepEqual(new Set(lost.map(({ item }) => item)), new Set(all().filter((item) => item.partition === number)))
        for (const [key, items] of waiting) waiting.set(key, items.filter((item) => item.partition !== number))
      }
      update()
      assert.equal(queue.size, all().length)
      assert.equal(queue.bytes, all().reduce((sum, item) => sum + item.bytes, 0))
      assert.equal(queue.countOf(endpoint), waiting.get(endpoint)!.length)
      assert.equal(queue.bytesOf(endpoint), waiting.get(endpoint)!.reduce((sum, item) => sum + item.bytes, 0))
    })
  }), { numRuns: 300 })
})
