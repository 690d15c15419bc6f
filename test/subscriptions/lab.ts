import type { TestContext } from 'node:test'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { openSubscriptionTable, type SubscriptionTable } from '../../shared/subscriptions/table.ts'
import { createSubscriptionWriter, type SubscriptionWriter } from '../../shared/subscriptions/write.ts'
import { createTestTopic, testConnection, testTopic } from '../support/kafka.ts'

export type Lab = { readonly topic: string; readonly table: SubscriptionTable; readonly writer: SubscriptionWriter; openTable(): Promise<SubscriptionTable>; writerAt(now: () => number): SubscriptionWriter }

/** A subscriptions topic of its own on the real broker, with a table that follows it and a writer. */
export async function startLab(t: TestContext): Promise<Lab> {
  const topic = await createTestTopic(t, 'subscriptions', { config: { 'cleanup.policy': 'compact' } })
  const openTable = async (): Promise<SubscriptionTable> => {
    const table = await openSubscriptionTable({
      connection: testConnection(), topic, groupPrefix: testTopic('table'), onFailed: (error) => { throw error },
    })
    t.after(() => table.close())
    return table
  }
  const table = await openTable()
  const producer = await createProducer({ connection: testConnection(), brokerTime: createBrokerTime() })
  t.after(() => producer.close())
  const writerAt = (now: () => number) =>
    createSubscriptionWriter({ table, producer, topic, rules: { allowsHttp: false, policyDefaults: defaultPolicy }, now })
  return { topic, table, writer: writerAt(Date.now), openTable, writerAt }
}
