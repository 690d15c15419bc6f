import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { stickyAssigner } from '../../shared/kafka/assignment.ts'
import { createKafka } from '../../shared/kafka/client.ts'
import { withMembershipHooks, type FetchedBatch, type GroupInternals, type MembershipHooks } from '../../shared/kafka/membership.ts'
import { createTestTopic, kafkaForTests, produceTo, testConnection, testTopic } from '../support/kafka.ts'

const { skip } = kafkaForTests()

/** What kafkajs's fetchers call; with several brokers several do at a time. */
type Group = GroupInternals & {
  joinAndSync(): Promise<void>
  fetch(nodeId: string): Promise<readonly FetchedBatch[]>
  getNodeIds(): string[]
}

/** A member whose only fetcher is busy with a record until the test ends, so that the test is its fetchers. */
async function join(t: TestContext, hooks: Partial<MembershipHooks> = {}) {
  const topic = await createTestTopic(t, 'membership', { partitions: 1 })
  await produceTo(topic, [{ value: 'x' }])
  const logged: string[] = []
  const busy = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  let group: Group | null = null
  const consumer = createKafka(testConnection()).consumer({
    groupId: testTopic('membership'),
    partitionAssigners: [withMembershipHooks(stickyAssigner(() => ({ generation: -1, owned: [] })), {
      beforeJoin: async () => undefined,
      onFetch: () => undefined,
      log: (_level, message) => { logged.push(message) },
      ...hooks,
      async afterJoin(joined) {
        group = joined as Group
        await hooks.afterJoin?.(joined)
      },
    })],
  })
  t.after(() => {
    ended.resolve()
    return consumer.disconnect()
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false, eachBatchAutoResolve: false,
    async eachBatch() {
      busy.resolve()
      await ended.promise
    },
  })
  await busy.promise
  assert.ok(group)
  return { group: group as Group, logged }
}

test('joins that several fetchers ask for at a time are one, and a fetch waits for it', { skip }, async (t) => {
  const seen: string[] = []
  let isSlow = false
  const { group } = await join(t, {
    beforeJoin: async () => { seen.push('before') },
    async afterJoin() {
      if (isSlow) await new Promise((resolve) => setTimeout(resolve, 300))
      seen.push('after')
    },
    onFetch: () => { seen.push('fetch') },
  })
  isSlow = true
  seen.length = 0
  const generation = group.generationId!
  await Promise.all([group.joinAndSync(), group.joinAndSync(), group.fetch(group.getNodeIds()[0]!)])
  assert.deepEqual(seen, ['before', 'after', 'fetch'])
  assert.equal(group.generationId, generation + 1)
})

test('what a fetch brings that was begun before a join is dropped', { skip }, async (t) => {
  const fetched: number[] = []
  const { group } = await join(t, { onFetch: (_begunAt, batches) => { fetched.push(batches.length) } })
  const nodeId = group.getNodeIds()[0]!
  const findBroker = Reflect.get(group.cluster, 'findBroker') as (node: object) => Promise<unknown>
  // The join comes between the choice of offsets and the request.
  Object.assign(group.cluster, {
    findBroker: async (node: object) => {
      Object.assign(group.cluster, { findBroker })
      await group.joinAndSync()
      return findBroker.call(group.cluster, node)
    },
  })
  fetched.length = 0
  assert.deepEqual(await group.fetch(nodeId), [])
  assert.deepEqual(fetched, [])
  assert.equal((await group.fetch(nodeId)).length, 1)
})

test('an assignment that cannot be taken up is said, and joined for again with fresh metadata', { skip }, async (t) => {
  let failures = 0
  let refreshed = 0
  let joins = 0
  const { logged } = await join(t, {
    async afterJoin({ cluster }) {
      joins += 1
      if (failures > 0) return
      failures += 1
      const { refreshMetadata } = cluster
      Object.assign(cluster, { refreshMetadata: async () => {
        refreshed ||= joins
        await refreshMetadata.call(cluster)
      } })
      throw new Error('the former leader was asked')
    },
  })
  assert.equal(refreshed, 1, 'metadata was read before the next join')
  assert.ok(logged.some((message) => message.includes('could not be taken up')), logged.join('\n'))
  assert.equal(joins, 2)
})

test('a coordinator that does not answer any more is looked up again', { skip }, async (t) => {
  const { group } = await join(t)
  const gone = { heartbeat: async () => { throw Object.assign(new Error('connect ECONNREFUSED'), { name: 'KafkaJSConnectionError', retriable: true }) } }
  group.coordinator = gone as unknown as NonNullable<GroupInternals['coordinator']>
  await assert.rejects(group.heartbeat({ interval: 0 }), /ECONNREFUSED/)
  assert.notEqual(group.coordinator, gone)
  await group.heartbeat({ interval: 0 })
})

test('a broker that lets a fetch time out is let go of, and metadata read anew', { skip }, async (t) => {
  const { group } = await join(t)
  const { cluster } = group
  const nodeId = group.getNodeIds()[0]!
  const broker = cluster.brokerPool.brokers[nodeId]!
  const { disconnect } = broker
  const { refreshMetadata } = cluster
  const findBroker = Reflect.get(cluster, 'findBroker') as () => Promise<unknown>
  const done: string[] = []
  Object.assign(broker, { disconnect: () => {
    done.push('disconnect')
    return disconnect.call(broker)
  } })
  Object.assign(cluster, {
    refreshMetadata: () => {
      done.push('metadata')
      return refreshMetadata.call(cluster)
    },
    findBroker: async () => ({ fetch: async () => { throw Object.assign(new Error('timed out'), { name: 'KafkaJSRequestTimeoutError', retriable: true }) } }),
  })
  await assert.rejects(group.fetch(nodeId), /timed out/)
  assert.deepEqual(done.slice(0, 2), ['disconnect', 'metadata'])
  Object.assign(cluster, { findBroker })
  assert.equal((await group.fetch(nodeId)).length, 1)
})
