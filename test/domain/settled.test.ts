import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createSettled, settledKey } from '../../shared/domain/settled.ts'

const key = (...words: number[]) => {
  const bytes = Buffer.alloc(16)
  words.forEach((word, index) => bytes.writeUInt32LE(word, index * 4))
  return bytes
}

test('a record at or below the highest settled one is a repeat', () => {
  const settled = createSettled({ capacity: 10 })
  const k = settledKey('del_a', Buffer.from('{}'))
  assert.equal(settled.isSettled(k, 0, 1), false)
  settled.record(k, 1, 3)
  const seen: readonly (readonly [number, number, boolean])[] = [[0, 1, true], [0, 99, true], [1, 2, true], [1, 3, true], [1, 4, false], [2, 1, false]]
  for (const [replay, attempt, isRepeat] of seen) assert.equal(settled.isSettled(k, replay, attempt), isRepeat, `${replay}/${attempt}`)
  settled.record(k, 0, 8)
  assert.equal(settled.isSettled(k, 1, 3), true, 'a late repeat lowers nothing')
  assert.equal(settled.isSettled(k, 1, 4), false)
})

test('the key is of the delivery id and the body', () => {
  const keys = [['del_a', '1'], ['del_b', '1'], ['del_a', '2'], ['del_', 'a1']].map(([id, body]) => settledKey(id!, Buffer.from(body!)).toString('hex'))
  assert.equal(new Set(keys).size, keys.length)
  assert.equal(keys[0]!.length, 32)
  assert.equal(settledKey('del_a', Buffer.from('1')).toString('hex'), keys[0])
  assert.throws(() => createSettled().record(Buffer.alloc(12), 0, 1), /12 bytes/)
})

/** Few distinct first words, so that chains collide, wrap around the table's end and are broken by eviction. */
test('the table holds the keys of the last records, whatever collides', () => {
  const words = fc.tuple(fc.constantFrom(0, 1, 2, 3, 15, 16, 30, 31, 0xffff_ffff, 0x8000_0000), fc.nat(1), fc.nat(1), fc.nat(1))
  const calls = fc.array(fc.tuple(words, fc.nat(3), fc.integer({ min: 1, max: 4 })), { maxLength: 120, size: 'max' })
  fc.assert(fc.property(calls, fc.integer({ min: 1, max: 16 }), (records, capacity) => {
    const settled = createSettled({ capacity })
    const everyKey = new Set(records.map(([w]) => JSON.stringify(w)))
    const recent: { k: string; rank: number }[] = []
    for (const [w, replay, attempt] of records) {
      settled.record(key(...w), replay, attempt)
      const k = JSON.stringify(w)
      if (recent.length === capacity) recent.shift()
      const before = recent.findLast((entry) => entry.k === k)?.rank ?? 0
      recent.push({ k, rank: Math.max(before, replay * 10 + attempt) })
      assert.equal(settled.size, new Set(recent.map((entry) => entry.k)).size)
      for (const other of everyKey) {
        const rank = recent.findLast((entry) => entry.k === other)?.rank ?? 0
        const bytes = key(...(JSON.parse(other) as number[]))
        for (const probe of [1, 4, 11, 14, 21, 24, 31, 34]) {
          assert.equal(settled.isSettled(bytes, Math.floor(probe / 10), probe % 10), probe <= rank)
        }
      }
    }
  }), { numRuns: 60 })
})

test('250,000 fit in 9 MB, and the oldest give way', () => {
  const settled = createSettled()
  assert.ok(settled.bytes < 9_000_000, `${settled.bytes} bytes`)
  let state = 1
  const random = () => (state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0
  const keys = Array.from({ length: 300_000 }, (_, i) => key(random(), i))
  for (const k of keys) settled.record(k, 0, 1)
  assert.equal(settled.size, 250_000)
  assert.equal(keys.slice(0, 50_000).filter((k) => settled.isSettled(k, 0, 1)).length, 0)
  assert.equal(keys.slice(50_000).filter((k) => settled.isSettled(k, 0, 1)).length, 250_000)
})
