import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAttemptHistory, type EndpointHealth } from '../../shared/domain/health.ts'
import { encodeDoneSet } from '../../shared/domain/done-set.ts'
import { createAdmin, isRetriableKafkaError } from '../../shared/kafka/client.ts'
import { createCluster } from '../../shared/kafka/cluster.ts'
import { partitionOf } from '../../shared/kafka/partitioner.ts'
import { startTag } from '../../shared/kafka/start-position.ts'
import { isGoneFor, readEndpoints } from '../../shared/lookup/endpoints.ts'
import { createScanAccount } from '../../shared/lookup/scan-account.ts'
import { countWaiting } from '../../shared/lookup/waiting.ts'
import { dueHeader } from '../../shared/records/record-headers.ts'
import { encodeEndpointHealth } from '../../shared/records/endpoint-health-codec.ts'
import { createTestTopic, deleteGroupAfter, kafkaForTests, produceTo, testConnection, testTopic, type Cleanup } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { scannerFor } from './attempts.ts'

const { skip } = kafkaForTests()
const now = 1_700_000_000_000
const hourMs = 3_600_000

function health(endpointKey: string, overrides: Partial<EndpointHealth> = {}): { key: string; value: Buffer } {
  return {
    key: endpointKey,
    value: encodeEndpointHealth({
      endpointKey, attempts: createAttemptHistory().pack(), band: 'healthy', throttledUntil: null, throttleRatePerSecond: null, goneAt: null, goneWrittenAt: null,
      lastError: null, lastStatus: null, updatedAt: now, ...overrides,
    }),
  }
}

test('an endpoint is as its last record says, with the score of now', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'health', { partitions: 2 })
  const scanner = scannerFor(t)
  const history = createAttemptHistory()
  for (const isSuccess of [true, true, false, false]) history.record(now - 10 * hourMs, isSuccess)
  await produceTo(topic, [
    health('ep_a', { band: 'unhealthy', throttledUntil: now + 1 }),
    health('ep_b'),
    health('ep_a', { attempts: history.pack(), band: history.band, lastError: 'http_503', lastStatus: 503, throttledUntil: now - 1, goneAt: now - 2, goneWrittenAt: now - 1 }),
    health('ep_c', { throttledUntil: now + 1 }),
    { key: 'ep_b', value: null },
    { key: 'ep_d', value: 'no record of ours' },
  ])
  const account = createScanAccount()
  const states = await readEndpoints(scanner, topic, { now }, account)
  assert.deepEqual([...states.keys()].sort(), ['ep_a', 'ep_c'])
  assert.equal(account.unreadable, 1)
  const { score, bandScore, ...rest } = states.get('ep_a')!
  // Half of the attempts, ten hours old: 0.5 * e^-1.
  assert.ok(Math.abs(score - 0.5 * Math.exp(-1)) < 1e-6 && Math.abs(bandScore - 0.5) < 1e-9, `${score} ${bandScore}`)
  assert.deepEqual(rest, {
    endpointKey: 'ep_a', band: 'unhealthy', attempts: 4, lastError: 'http_503', lastStatus: 503, throttledUntil: null,
    goneSince: now - 1, goneFor: now - 2, updatedAt: now,
  })
  assert.equal(states.get('ep_c')?.throttledUntil, now + 1)
  assert.deepEqual([isGoneFor(rest, { appendedAt: now - 2 }), isGoneFor(rest, { appendedAt: now - 1 })], [true, false])

  const one = createScanAccount()
  assert.deepEqual([...(await readEndpoints(scanner, topic, { now, endpointKey: 'ep_c' }, one)).keys()], ['ep_c'])
  assert.equal(one.partitions.get(topic), 1)
})

/** As the members of a group that has none: kafkajs's own admin commits no metadata. */
async function commit(t: Cleanup, groupId: string, { topic, ...one }: { topic: string; partition: number; offset: number; metadata: string }): Promise<void> {
  const cluster = createCluster(testConnection()) as ReturnType<typeof createCluster> & { findGroupCoordinator(of: { groupId: string }): Promise<{ offsetCommit(request: object): Promise<unknown> }> }
  t.after(() => cluster.disconnect())
  await cluster.connect()
  await until(async () => {
    try {
      const coordinator = await cluster.findGroupCoordinator({ groupId })
      await coordinator.offsetCommit({ groupId, groupGenerationId: -1, memberId: '', retentionTime: -1, topics: [{ topic, partitions: [{ ...one, offset: String(one.offset) }] }] })
      return true
    } catch (error) {
      if (isRetriableKafkaError(error)) return false
      throw error
    }
  }, { intervalMs: 100 })
}

test('what waits is what its group has not finished, in and out of order', { skip }, async (t) => {
  const [tier, deliveries] = [await createTestTopic(t, 'waiting-tier', { partitions: 3 }), await createTestTopic(t, 'waiting-deliveries')]
  const [scanner, admin] = [scannerFor(t), await createAdmin(testConnection())]
  t.after(() => admin.close())
  const [groupId, unused] = [testTopic('waiting'), testTopic('waiting')]
  deleteGroupAfter(t, groupId)
  const waiting = (key: string, dueAt: number) => ({ key, value: 'delivery', headers: { [dueHeader]: String(dueAt) } })
  // Offsets 0 to 5 of the partition of ep_a: 0 is committed, 2 and 3 are done above it.
  await produceTo(tier, [5, 4, 3, 2, 1, 6].map((due) => waiting('ep_a', due)))
  await produceTo(tier, [waiting('ep_other', 7)])
  await produceTo(deliveries, [{ key: 'ep_a', value: 'a' }, { key: 'ep_b', value: 'b' }])
  const partition = partitionOf(Buffer.from('ep_a'), 3)
  const [end] = (await admin.fetchTopicOffsets(tier)).filter((one) => one.partition === partition)
  assert.equal(end?.high, '6', 'the other endpoint lies elsewhere')
  await commit(t, groupId, { topic: tier, partition, offset: 1, metadata: `${startTag(3)}${encodeDoneSet(1, [2, 4], 4096)}` })

  const places = [{ topic: deliveries, groupId: unused }, { topic: tier, groupId }]
  const count = async (options: Parameters<typeof countWaiting>[2]) => {
    const account = createScanAccount()
    const counts = await countWaiting({ scanner, admin }, places, options, account)
    return { account, counts: Object.fromEntries([...counts].map(([key, places]) => [key, places.map(({ topic, records, nextDueAt }) => [topic === tier ? 'tier' : 'deliveries', records, nextDueAt])])) }
  }
  assert.deepEqual((await count({ endpointKey: 'ep_a' })).counts, { ep_a: [['deliveries', 1, null], ['tier', 3, 1]] })
  assert.deepEqual((await count({})).counts, { ep_a: [['deliveries', 1, null], ['tier', 3, 1]], ep_b: [['deliveries', 1, null]], ep_other: [['tier', 1, 7]] })
  const bounded = await count({ maxRecords: 2 })
  assert.match(bounded.account.leftOut ?? '', /beyond the first 2 records/)
  assert.equal((await count({ maxRecords: 8 })).account.leftOut, null, 'exactly all')
})
