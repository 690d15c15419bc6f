import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkPattern, createSubscriptionIndex, isWanted, matches, type Interest } from '../../shared/domain/matching.ts'

test('patterns match as published', () => {
  const rows: [string, string[], string[]][] = [
    ['*', ['order', 'order.paid', '__proto__', 'posthouse', 'posthousex.y'], ['posthouse.endpoint.gone', 'posthouse.']],
    ['order.*', ['order.paid', 'order.a.b', 'order.*', 'order.'], ['order', 'orders.paid', 'orderXpaid', 'Order.paid', 'x.order.paid']],
    ['order.a.*', ['order.a.b', 'order.a.b.c'], ['order.a', 'order.b', 'order.ab.c']],
    ['order.paid', ['order.paid'], ['order.paid.late', 'order', 'Order.paid', 'orderXpaid']],
    ['user.update', ['user.update'], ['User.update', 'user.updated', 'user']],
    ['posthouse.*', ['posthouse.endpoint.gone'], ['posthouse', 'order.paid']],
    ['posthouse.endpoint.gone', ['posthouse.endpoint.gone'], ['posthouse.endpoint']],
    ['__proto__', ['__proto__'], ['constructor', 'order']],
  ]
  for (const [pattern, yes, no] of rows) {
    const index = createSubscriptionIndex()
    index.set('s1', { tenant: null, patterns: ['unrelated', pattern] })
    for (const [types, expected] of [[yes, true], [no, false]] as const) {
      for (const type of types) {
        assert.equal(matches(pattern, type), expected, `${pattern} and ${type}`)
        assert.deepEqual(index.find(null, type), expected ? ['s1'] : [], `${pattern} and ${type} in the index`)
      }
    }
  }
})

test('patterns that would not do what they seem to are refused', () => {
  for (const good of ['*', 'order.*', 'order.paid', 'a', 'posthouse.*', '__proto__', 'x'.repeat(256)]) assert.equal(checkPattern(good), null, good)
  for (const bad of ['', '.*', '**', '*.paid', 'order*', 'order.*.paid', 'order.**', 'order. *', 'a b', 'é', 'a\n', 'x'.repeat(257)]) assert.notEqual(checkPattern(bad), null, bad)
})

const word = fc.constantFrom('a', 'b', '__proto__', 'posthouse', '')
const type = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join('.'))
const pattern = fc.oneof(type, type.map((text) => `${text}.*`), fc.constant('*'))
const tenant = fc.constantFrom(null, '', 'acme', '__proto__')
const id = fc.constantFrom('s1', 's2', 's3', 's4', '__proto__')
const step = fc.oneof(
  fc.record({ id, interest: fc.record({ tenant, patterns: fc.array(pattern, { maxLength: 4 }) }) }),
  fc.record({ id, interest: fc.constant(null) }),
)

test('the index finds what a walk over all subscriptions finds, whatever was set and deleted before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), fc.array(fc.tuple(tenant, type), { minLength: 1, maxLength: 8 }), (steps, events) => {
      const index = createSubscriptionIndex()
      const plain = new Map<string, Interest>()
      for (const { id, interest } of steps) {
        if (interest === null) {
          index.delete(id)
          plain.delete(id)
        } else {
          index.set(id, interest)
          plain.set(id, interest)
        }
      }
      assert.equal(index.size(), plain.size)
      for (const [tenant, type] of events) {
        const expected = [...plain].filter(([, interest]) => interest.tenant === tenant && interest.patterns.some((pattern) => matches(pattern, type)))
        assert.deepEqual(index.find(tenant, type).sort(), expected.map(([id]) => id).sort())
        assert.deepEqual([...plain].filter(([, interest]) => isWanted(interest, { tenant, type })), expected)
      }
    }),
    { numRuns: 300 },
  )
})

test('a subscription that matches in three ways is found once', () => {
  const index = createSubscriptionIndex()
  index.set('s1', { tenant: null, patterns: ['*', 'order.*', 'order.paid', 'order.paid'] })
  index.set('s2', { tenant: null, patterns: ['order.paid'] })
  assert.deepEqual(index.find(null, 'order.paid').sort(), ['s1', 's2'])
})

test('the index keeps its own copy of the patterns', () => {
  const index = createSubscriptionIndex()
  const patterns = ['a']
  index.set('s1', { tenant: null, patterns })
  patterns[0] = 'b'
  index.delete('s1')
  assert.deepEqual(index.find(null, 'a'), [])
})

test('a look-up does not walk over the subscriptions', () => {
  const build = (subscriptions: number) => {
    const index = createSubscriptionIndex()
    for (let n = 0; n < subscriptions; n += 1) index.set(`s${n}`, { tenant: n % 2 === 0 ? null : `t${n % 50}`, patterns: [`type${n}.*`, `order.n${n}`] })
    index.set('wanted', { tenant: null, patterns: ['order.paid'] })
    return index
  }
  // The best of several rounds, and only the ratio: a walk over 100,000 would take about a thousand times as long.
  const bestMs = (index: ReturnType<typeof build>) => Math.min(...Array.from({ length: 5 }, () => {
    const startedAt = performance.now()
    for (let n = 0; n < 500; n += 1) assert.equal(index.find(null, 'order.paid')[0], 'wanted')
    return performance.now() - startedAt
  }))
  const small = build(100)
  bestMs(small)
  assert.ok(bestMs(build(100_000)) < 50 * bestMs(small))
})
