import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { createSpreader, murmur2, partitionOf } from '../../shared/kafka/partitioner.ts'

const { Partitioners } = kafkajs

test('murmur2 gives the values of Kafka\'s own unit test', () => {
  // org.apache.kafka.common.utils.UtilsTest.testMurmur2
  const expected: Record<string, number> = {
    '21': -973932308, 'foobar': -790332482, 'a-little-bit-long-string': -985981536,
    'a-little-bit-longer-string': -1486304829, 'lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8': -58897971, 'abc': 479470107,
  }
  for (const [key, hash] of Object.entries(expected)) assert.equal(murmur2(Buffer.from(key)), hash, key)
})

test('a keyed record goes where kafkajs\'s default partitioner puts it', () => {
  const theirs = Partitioners.DefaultPartitioner()
  for (let round = 0; round < 5_000; round++) {
    const key = randomBytes(randomInt(0, 40))
    const partitionCount = randomInt(1, 64)
    const partitionMetadata = Array.from({ length: partitionCount }, (_, partitionId) => ({
      partitionErrorCode: 0, partitionId, leader: 1, replicas: [1], isr: [1],
    }))
    const expected = theirs({ topic: 't', partitionMetadata, message: { key, value: null } })
    assert.equal(partitionOf(key, partitionCount), expected, key.toString('hex'))
  }
})

test('keyless records are spread evenly, each topic by itself, and follow a growing topic', () => {
  const spread = createSpreader()
  const counts = new Map<number, number>()
  for (let record = 0; record < 120; record++) {
    const partition = spread('a', 12)
    counts.set(partition, (counts.get(partition) ?? 0) + 1)
    spread('b', 3)
  }
  assert.deepEqual([...counts.values()], Array.from({ length: 12 }, () => 10))
  const grown = new Set(Array.from({ length: 24 }, () => spread('a', 24)))
  assert.equal(grown.size, 24)
})
