import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { assignSticky, type Member, type TopicPartition } from '../../shared/kafka/assignment.ts'

const member = (memberId: string, topics: string[], owned: TopicPartition[] = [], generation = owned.length > 0 ? 1 : -1): Member =>
  ({ memberId, topics, owned, generation })

const owned = (topic: string, ...partitions: number[]): TopicPartition[] => partitions.map((partition) => ({ topic, partition }))

test('every partition goes to exactly one subscriber, evenly, whatever the members claim', () => {
  const topics = ['a', 'b', 'c']
  const claim = fc.record({ topic: fc.constantFrom(...topics), partition: fc.integer({ min: 0, max: 20 }) })
  const members = fc.uniqueArray(fc.record({
    memberId: fc.string({ minLength: 1, maxLength: 8 }),
    topics: fc.uniqueArray(fc.constantFrom(...topics), { minLength: 1 }),
    owned: fc.array(claim, { maxLength: 20 }),
    generation: fc.integer({ min: -1, max: 5 }),
  }), { selector: ({ memberId }) => memberId, minLength: 1, maxLength: 6 })
  const counts = fc.array(fc.integer({ min: 0, max: 16 }), { minLength: 3, maxLength: 3 })

  fc.assert(fc.property(members, counts, (all, sizes) => {
    const partitionCounts = new Map(topics.map((topic, index) => [topic, sizes[index] ?? 0]))
    const assignment = assignSticky(all, partitionCounts)
    for (const [topic, count] of partitionCounts) {
      const subscribers = all.filter((one) => one.topics.includes(topic))
      const shares = all.map(({ memberId }) => (assignment.get(memberId) ?? []).filter((one) => one.topic === topic))
      const given = shares.flat().map(({ partition }) => partition).sort((a, b) => a - b)
      assert.deepEqual(given, subscribers.length === 0 ? [] : Array.from({ length: count }, (_, partition) => partition))
      for (const [index, { memberId, topics: subscribed }] of all.entries()) {
        const size = shares[index]?.length ?? 0
        if (!subscribed.includes(topic)) assert.equal(size, 0, `${memberId} does not subscribe to ${topic}`)
        else assert.ok(size === Math.floor(count / subscribers.length) || size === Math.ceil(count / subscribers.length))
      }
    }
  }))
})

test('a member that joins takes only its share, one that leaves gives up only its own', () => {
  const counts = new Map([['a', 12]])
  const joined = assignSticky([
    member('m1', ['a'], owned('a', 0, 2, 4, 6, 8, 10)), member('m2', ['a'], owned('a', 1, 3, 5, 7, 9, 11)), member('m0', ['a']),
  ], counts)
  const kept = (id: string, before: number[]): number => (joined.get(id) ?? []).filter(({ partition }) => before.includes(partition)).length
  assert.equal(kept('m1', [0, 2, 4, 6, 8, 10]), 4)
  assert.equal(kept('m2', [1, 3, 5, 7, 9, 11]), 4)
  assert.equal(joined.get('m0')?.length, 4)

  const left = assignSticky([member('m1', ['a'], owned('a', 0, 2, 4, 6)), member('m0', ['a'], owned('a', 8, 9, 10, 11))], counts)
  assert.deepEqual((left.get('m1') ?? []).filter(({ partition }) => [0, 2, 4, 6].includes(partition)).length, 4)
  assert.deepEqual((left.get('m0') ?? []).filter(({ partition }) => partition >= 8).length, 4)
})

test('of two claims on one partition the later generation wins', () => {
  const assignment = assignSticky([
    { ...member('old', ['a'], owned('a', 0, 1)), generation: 3 }, { ...member('new', ['a'], owned('a', 0, 1)), generation: 4 },
  ], new Map([['a', 2]]))
  assert.equal(assignment.get('new')?.length, 1)
  assert.equal(assignment.get('old')?.length, 1)
  const single = assignSticky([
    { ...member('old', ['a'], owned('a', 0)), generation: 3 }, { ...member('new', ['a'], owned('a', 0)), generation: 4 },
  ], new Map([['a', 1]]))
  assert.deepEqual(single.get('new'), owned('a', 0))
})
