import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { decodeDoneSet, encodeDoneSet } from '../../shared/domain/done-set.ts'

/** Runs above a base from pairs (unfinished before, done), both at least 1. */
function runsFrom(base: number, pairs: readonly (readonly [number, number])[]): number[] {
  let end = base
  return pairs.flatMap(([unfinished, done]) => {
    const start = end + unfinished
    end = start + done
    return [start, end]
  })
}

const length = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 2 ** 33 }))
const bases = fc.oneof(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 2 ** 48 }))
const pairs = fc.array(fc.tuple(length, length), { maxLength: 60, size: 'max' })

function isSubset(inner: readonly number[], outer: readonly number[]): boolean {
  let at = 0
  for (let i = 0; i < inner.length; i += 2) {
    while (at < outer.length && outer[at + 1]! < inner[i + 1]!) at += 2
    if (at >= outer.length || outer[at]! > inner[i]!) return false
  }
  return true
}

test('a done set that fits comes back as it was', () => {
  fc.assert(fc.property(bases, pairs, (base, lengths) => {
    const runs = runsFrom(base, lengths)
    const text = encodeDoneSet(base, runs, 4096)
    assert.equal(text === '', runs.length === 0)
    assert.match(text, /^(1[bg]:[\w-]+)?$/)
    if (text !== '') assert.deepEqual(decodeDoneSet(base, text), runs)
  }))
})

test('a done set that does not fit is cut from the top, and what is left is true', () => {
  fc.assert(fc.property(bases, fc.array(fc.tuple(length, length), { minLength: 1, maxLength: 60, size: 'max' }), fc.integer({ min: 0, max: 60 }), (base, lengths, limit) => {
    const runs = runsFrom(base, lengths)
    const text = encodeDoneSet(base, runs, limit)
    assert.ok(text.length <= limit)
    if (text === '') return
    const kept = decodeDoneSet(base, text)
    assert.ok(kept !== null && kept.length > 0)
    assert.ok(isSubset(kept, runs))
    // Complete up to where it ends: nothing is missing from the middle.
    const top = kept[kept.length - 1]!
    const expected: number[] = []
    for (let i = 0; i < runs.length && runs[i]! < top; i += 2) expected.push(runs[i]!, Math.min(runs[i + 1]!, top))
    assert.deepEqual(kept, expected)
  }))
})

test('the shorter form is taken: a bitmap where unfinished ones are many, gaps where they are few', () => {
  const dense = runsFrom(0, Array.from({ length: 2000 }, () => [1, 1] as const))
  const bitmap = encodeDoneSet(0, dense, 4096)
  assert.ok(bitmap.startsWith('1b:'))
  assert.ok(bitmap.length <= 680, `4,000 offsets took ${bitmap.length} characters`)
  const sparse = runsFrom(0, Array.from({ length: 100 }, () => [1, 999] as const))
  const gaps = encodeDoneSet(0, sparse, 4096)
  assert.ok(gaps.startsWith('1g:'))
  assert.ok(gaps.length <= 280, `100 unfinished in 100,000 took ${gaps.length} characters`)
})

test('cut short, the form that reaches higher is kept', () => {
  const random = Array.from({ length: 30_000 }, (_, i) => [1, 1 + ((i * 7919) % 3)] as const)
  const runs = runsFrom(5, random)
  const kept = decodeDoneSet(5, encodeDoneSet(5, runs, 4096))
  assert.ok(kept !== null && kept[kept.length - 1]! > 24_000)
  const rare = runsFrom(5, Array.from({ length: 5000 }, () => [1, 63] as const))
  const keptRare = decodeDoneSet(5, encodeDoneSet(5, rare, 4096))
  assert.ok(keptRare !== null && keptRare[keptRare.length - 1]! > 190_000)
})

test('what is not a set of this offset is unreadable, never a wrong set', () => {
  const text = encodeDoneSet(10, [12, 14, 20, 29], 4096)
  assert.deepEqual(decodeDoneSet(10, text), [12, 14, 20, 29])
  assert.equal(decodeDoneSet(11, text), null)
  for (const other of ['', 'x', '1b:', '1g:', '1g:AAAAAA', '2g:' + text.slice(3), (text.startsWith('1g') ? '1b' : '1g') + text.slice(2), text.slice(0, -2), `${text}AA`, '{"n":12}']) {
    assert.equal(decodeDoneSet(10, other), null, other)
  }
  fc.assert(fc.property(fc.string(), fc.constantFrom('', '1b:', '1g:'), (garbage, prefix) => decodeDoneSet(10, prefix + garbage) === null))
})
