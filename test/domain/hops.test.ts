import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextHop, parseTierSuffix, tierAllowanceMs, tierTopicSuffix } from '../../shared/domain/hops.ts'

const [s, m, h] = [1_000, 60_000, 3_600_000]
const standardTiers = [10 * s, m, 5 * m, 30 * m, 2 * h, 8 * h, 24 * h, 48 * h]

test('tiers are named as in the published schedule, and names are read back', () => {
  assert.deepEqual(standardTiers.map(tierTopicSuffix), ['10s', '1m', '5m', '30m', '2h', '8h', '24h', '48h'])
  for (const tier of standardTiers) assert.equal(parseTierSuffix(tierTopicSuffix(tier)), tier)
  assert.equal(parseTierSuffix('60s'), m)
  for (const other of ['soon', '', '0s', '10', 'old.1m', '1m.1']) assert.equal(parseTierSuffix(other), null, other)
})

test('the next hop is the largest tier that fits, give or take its allowance', () => {
  const rows: [number, number | 'soon' | 'now'][] = [
    [0, 'now'], [-1, 'now'], [1, 'soon'], [9_899, 'soon'], [9_900, 10 * s], [10 * s, 10 * s], [59 * s, 10 * s], [59_400, m], [m, m],
    [2 * h - 61 * s, 30 * m], [2 * h - 60 * s, 2 * h], [48 * h, 48 * h], [48 * h - 60 * s, 48 * h], [48 * h - 61 * s, 24 * h], [400 * h, 48 * h],
    [Number.POSITIVE_INFINITY, 48 * h],
  ]
  for (const [left, expected] of rows) {
    const hop = nextHop(left, standardTiers)
    assert.equal(hop.kind === 'tier' ? hop.delayMs : hop.kind, expected, `${left} ms left`)
  }
  assert.deepEqual(nextHop(3 * s, [5 * s, s, 2 * s]), { kind: 'tier', delayMs: 2 * s })
  assert.deepEqual(nextHop(3 * s, []), { kind: 'soon' })
})

test('the allowance is 1 % of the tier, at most a minute', () => {
  assert.deepEqual([10 * s, m, 2 * h, 48 * h].map(tierAllowanceMs), [100, 600, m, m])
})

test('hops add up to the wait: never early, late by no more than one allowance, and few', () => {
  const tiers = fc.oneof(
    fc.constant(standardTiers),
    fc.constant([s, 2 * s, 5 * s]),
    // Each up to 60 times the one below: tiers of 50 ms and 48 h with none between make millions of hops, and hours of shrinking.
    fc.tuple(fc.integer({ min: 50, max: 10 * m }), fc.array(fc.double({ min: 1.01, max: 60, noNaN: true }), { maxLength: 7 }))
      .map(([least, factors]) => factors.reduce((tiers, factor) => [...tiers, Math.round(tiers.at(-1)! * factor)], [least])
        .filter((tier) => tier <= 48 * h)),
  )
  fc.assert(
    fc.property(tiers, fc.double({ min: 0, max: 1, noNaN: true }), (tiers, share) => {
      const wait = Math.round(share * Math.min(14 * 24 * h, 500 * Math.max(...tiers)))
      const taken: number[] = []
      let total = 0
      for (let hop = nextHop(wait, tiers); hop.kind !== 'now'; hop = nextHop(wait - total, tiers)) {
        taken.push(hop.kind === 'tier' ? hop.delayMs : wait - total)
        total += taken.at(-1)!
        assert.ok(taken.length < 50_000, 'the hops do not end')
        if (hop.kind === 'soon') assert.ok(taken.at(-1)! < Math.min(...tiers))
      }
      assert.ok(total >= wait, `early: ${taken.join(' ')} for ${wait}`)
      assert.ok(total - wait <= Math.max(0, ...taken.map(tierAllowanceMs)), `late: ${taken.join(' ')} for ${wait}`)
      if (tiers === standardTiers) assert.ok(taken.length <= 7 + 5 + 5 + 6 + 4 + 4 + 3 + 6 + 1, `${taken.length} hops`)
    }),
  )
})

test('the waits of the standard schedule with their jitter take few hops', () => {
  for (const wait of [m, 5 * m, 30 * m, 2 * h, 8 * h, 24 * h, 48 * h]) {
    let [left, hops] = [wait * 1.037, 0]
    for (let hop = nextHop(left, standardTiers); hop.kind === 'tier'; hop = nextHop(left, standardTiers)) {
      left -= hop.delayMs
      hops += 1
    }
    assert.ok(hops <= 12, `${hops} hops for ${wait} ms`)
  }
})
