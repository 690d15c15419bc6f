import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createHashSlots } from '../../shared/domain/hash-slots.ts'
import { createKeyIndex } from '../../shared/dead-letters/key-index.ts'

test('keys keep their slot as the table grows, and a key that was never taken has none', () => {
  const slots = createHashSlots({ capacity: 4 })
  const names = Array.from({ length: 5_000 }, (_, number) => `key-${number}`)
  assert.deepEqual(names.map((name) => slots.take(name)), names.map((_, index) => index))
  assert.deepEqual(names.map((name) => slots.take(Buffer.from(name))), names.map((_, index) => index))
  assert.equal(slots.size, 5_000)
  assert.ok(slots.capacity >= 5_000)
  assert.equal(slots.find('key-4999'), 4_999)
  assert.equal(slots.find('key-5000'), -1)
  assert.equal(slots.size, 5_000, 'looking takes none')
})

type Step = { readonly delivery: number; readonly replay: number; readonly isTombstone: boolean }
const partitionCount = 3

test('whatever is written and cleared in whatever order, the last record of a key says what every record of it is worth', () => {
  const steps = fc.array(fc.record({ delivery: fc.nat({ max: 5 }), replay: fc.nat({ max: 3 }), isTombstone: fc.boolean() }), { maxLength: 60 })
  fc.assert(fc.property(steps, (given) => {
    const index = createKeyIndex()
    const nextOffsets = Array.from({ length: partitionCount }, () => 0)
    const records = given.map(({ delivery, replay, isTombstone }: Step) => {
      const partition = (delivery + replay) % partitionCount
      const offset = nextOffsets[partition]!
      nextOffsets[partition] = offset + 2
      return { partition, offset, isTombstone, delivery, replay, text: `del_${delivery}.${replay}`, key: Buffer.from(`del_${delivery}.${replay}`) }
    })
    for (const record of records) index.apply(record)

    const highest = new Map<number, number>()
    for (const { delivery, replay } of records) highest.set(delivery, Math.max(replay, highest.get(delivery) ?? 0))
    const lastOf = (text: string) => records.findLast((record) => record.text === text)!
    const lastValueOf = (text: string) => records.findLast((record) => record.text === text && !record.isTombstone)!
    for (const record of records.filter(({ isTombstone }) => !isTombstone)) {
      const lastValue = lastValueOf(record.text)
      const last = lastOf(record.text)
      const expected = record !== lastValue ? { kind: 'outdated' }
        : last.isTombstone ? { kind: 'cleared', tombstoneOffset: last.offset }
          : highest.get(record.delivery)! > record.replay ? { kind: 'superseded', byReplay: highest.get(record.delivery)! }
            : { kind: 'open' }
      assert.deepEqual(index.standingOf(record), expected)
    }
    const lastValues = [...new Set(records.map(({ text }) => text))].map(lastValueOf).filter(Boolean)
    const openOnes = lastValues.filter((record) => !lastOf(record.text).isTombstone)
    assert.equal(index.openCount(), openOnes.length)
    for (const [of, among] of [['open', openOnes], ['all', lastValues]] as const) {
      const expected = new Map([...Map.groupBy(among, ({ partition }) => partition)].map(([partition, group]) =>
        [partition, { first: Math.min(...group.map(({ offset }) => offset)), last: Math.max(...group.map(({ offset }) => offset)) }]))
      assert.deepEqual(index.ranges(of), expected)
    }
  }))
})

test('what the index does not know of is nothing: a record written later, another partition, a key that is none of ours', () => {
  const index = createKeyIndex()
  const key = Buffer.from('del_a.0')
  index.apply({ partition: 1, offset: 5, key, isTombstone: false })
  index.apply({ partition: 1, offset: 6, key: null, isTombstone: false })
  assert.equal(index.standingOf({ partition: 1, offset: 7, key }), null)
  assert.equal(index.standingOf({ partition: 2, offset: 5, key }), null)
  assert.equal(index.standingOf({ partition: 1, offset: 6, key: null }), null)
  assert.equal(index.standingOf({ partition: 1, offset: 5, key: Buffer.from('del_b.0') }), null)
  index.apply({ partition: 0, offset: 0, key: Buffer.from('a stray key'), isTombstone: false })
  assert.equal(index.standingOf({ partition: 0, offset: 0, key: Buffer.from('a stray key') }), null)
  assert.equal(index.openCount(), 1)
})
