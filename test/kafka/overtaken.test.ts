import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { startConsumer } from '../../shared/kafka/consumer.ts'
import type { FetchedBatch } from '../../shared/kafka/membership.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import { createTestTopic, kafkaForTests, produceTo, testConnection, testTopic } from '../support/kafka.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

type Fetch = (this: object, nodeId: string) => Promise<readonly FetchedBatch[]>

/**
 * Stands below our own wrapper (thus a file of its own: it must be there before the first consumer) and once gives an answer again that
 * was given before, as when the former leader of a partition answers after the new one.
 */
function repeatFirstAnswer(): { readonly wasRepeated: () => boolean; allow(): void } {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/consumer/consumerGroup') as { prototype: { fetch: Fetch } }
  const { fetch } = prototype
  let first: readonly FetchedBatch[] | null = null
  let isAllowed = false
  let wasRepeated = false
  prototype.fetch = async function (nodeId) {
    if (first && isAllowed && !wasRepeated) {
      wasRepeated = true
      return first
    }
    const batches = await fetch.call(this, nodeId)
    if (first === null && batches.some(({ rawMessages }) => rawMessages.length > 0)) first = batches
    return batches
  }
  return { wasRepeated: () => wasRepeated, allow: () => { isAllowed = true } }
}

test('an answer that another one has overtaken is let go: it is no topic made anew, and the position stays', { skip }, async (t) => {
  const answers = repeatFirstAnswer()
  const topic = await createTestTopic(t, 'overtaken', { partitions: 1 })
  const leases: Lease[] = []
  const warnings: string[] = []
  let lost = 0
  const consumer = await startConsumer({
    connection: testConnection({ log: (level, message) => { if (level === 'warn') warnings.push(message) } }),
    groupId: testTopic('overtaken'), topics: [topic], windowBytes: 64 * 1024 * 1024,
    handlers: { onRecord: (lease) => { leases.push(lease) }, onLost: (partitions) => { lost += partitions.length }, onFailed: (error) => { throw error } },
  })
  t.after(() => consumer.close())
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => ({ value: String(from + index) }))
  await produceTo(topic, numbers(0, 10))
  await until(() => leases.length === 10)
  await produceTo(topic, numbers(10, 20))
  await until(() => leases.length === 20)
  for (const lease of leases.slice(5)) lease.done()
  answers.allow()
  await until(answers.wasRepeated)
  await produceTo(topic, numbers(20, 30))
  await until(() => leases.length >= 30)
  assert.deepEqual(leases.map(({ record }) => Number(record.value)), Array.from({ length: 30 }, (_, index) => index))
  assert.equal(lost, 0)
  assert.ok(leases.every(({ isHeld }) => isHeld), 'what is in hand stays in hand')
  assert.deepEqual(warnings.filter((message) => message.includes('anew')), [])
})
