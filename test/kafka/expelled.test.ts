import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { startConsumer } from '../../shared/kafka/consumer.ts'
import type { FetchedBatch } from '../../shared/kafka/membership.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import { createTestTopic, kafkaForTests, produceTo, testConnection, testTopic } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

type Prototype = {
  fetch(this: object, nodeId: string): Promise<readonly FetchedBatch[]>
  heartbeat(this: object, options: object): Promise<void>
}

/** Stands below our own wrapper, thus a file of its own: no heartbeat is answered, and the first one after a record was fetched says that the member was expelled. */
function loseCoordinator(): { readonly lose: () => void } {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/consumer/consumerGroup') as { prototype: Prototype }
  const { fetch, heartbeat } = prototype
  let state: 'well' | 'silent' | 'expelled' = 'well'
  prototype.fetch = async function (nodeId) {
    const batches = await fetch.call(this, nodeId)
    if (state === 'silent' && batches.some(({ rawMessages }) => rawMessages.length > 0)) state = 'expelled'
    return batches
  }
  prototype.heartbeat = async function (options) {
    if (state === 'well') return heartbeat.call(this, options)
    if (state === 'silent') return
    state = 'well'
    throw Object.assign(new Error('The coordinator is not aware of this member'), { name: 'KafkaJSProtocolError', type: 'UNKNOWN_MEMBER_ID' })
  }
  return { lose: () => { state = 'silent' } }
}

test('a member that has not heard from its coordinator for long begins nothing before it has', { skip }, async (t) => {
  const coordinator = loseCoordinator()
  const topic = await createTestTopic(t, 'expelled', { partitions: 1 })
  const leases: Lease[] = []
  const consumer = await startConsumer({
    connection: testConnection(), groupId: testTopic('expelled'), topics: [topic], windowBytes: 64 * 1024 * 1024, sessionTimeoutMs: 2_000,
    handlers: { onRecord: (lease) => { leases.push(lease) }, onFailed: (error) => { throw error } },
  })
  t.after(() => consumer.close())
  await until(() => consumer.lastHeartbeatAt() !== null)
  coordinator.lose()
  await until(() => Date.now() - consumer.lastHeartbeatAt()! > 1_100)
  await produceTo(topic, [{ value: 'x' }])
  await until(() => consumer.joins() === 2 && leases.some(({ isHeld }) => isHeld))
  assert.equal(leases.length, 1, 'the record is not begun by one who may not own it any more')
})
