import { toKafkaConnection } from '../../shared/config/kafka-connection.ts'
import type { Config } from '../../shared/config/config.ts'
import { createAttemptHistory, type HealthBand } from '../../shared/domain/health.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createAdmin, type KafkaLog } from '../../shared/kafka/client.ts'
import type { ConsumedRecord } from '../../shared/kafka/consumed-record.ts'
import { deleteGroup } from '../../shared/kafka/delete-group.ts'
import { follow } from '../../shared/kafka/follow.ts'
import { createProducer, type Producer } from '../../shared/kafka/producer.ts'
import { applyTopics, planTopics } from '../../shared/kafka/provision.ts'
import { topicCatalogue, topicNames } from '../../shared/kafka/topics.ts'
import { createClosers } from '../../shared/lifecycle/closers.ts'
import { decodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import { decodeEndpointHealth } from '../../shared/records/endpoint-health-codec.ts'
import { openSubscriptionTable } from '../../shared/subscriptions/table.ts'
import { createSubscriptionWriter } from '../../shared/subscriptions/write.ts'

export type Health = { readonly band: HealthBand; readonly score: number }
export type Wanted = { readonly endpoint: string; readonly url: string; readonly secret: string }
export type Made = { readonly endpoint: string; readonly subscriptionId: string; readonly endpointKey: string }

/** What the sample itself does with Kafka, by the same code that the CLI uses. */
export type BrokerSide = {
  readonly eventsTopic: string
  readonly producer: Producer
  /** Resolves a second after the last write, as `posthouse subscriptions create` does: events sent from then on reach them. */
  subscribe(wanted: readonly Wanted[]): Promise<Made[]>
  /** By endpoint key, from the `endpoint-health` topic. */
  health(): ReadonlyMap<string, Health>
  close(): Promise<void>
}

/** Makes the topics, and reads back `dlq` and `endpoint-health` as they grow. `deletesTopics`: they, and the groups that read them, are deleted on close. */
export async function openBrokerSide({ config, log, onDeadLetter, onFailed, deletesTopics }: {
  readonly config: Config
  readonly log: KafkaLog
  readonly onDeadLetter: (deliveryId: string) => void
  readonly onFailed: (error: Error) => void
  readonly deletesTopics: boolean
}): Promise<BrokerSide> {
  const closers = createClosers()
  const connection = toKafkaConnection(config.kafka, log)
  const names = topicNames(config.topics.prefix)
  const groupPrefix = `${config.groupPrefix}.sample`
  const eventsTopic = config.events.topics[0]!
  const health = new Map<string, Health>()

  function onRecord({ topic, key, value }: ConsumedRecord): void {
    if (value === null) return
    if (topic === names.dlq) return onDeadLetter(decodeDeadLetter(value).delivery.id)
    const record = decodeEndpointHealth(value)
    health.set(String(key), { band: record.band, score: createAttemptHistory(record).bandScore() })
  }

  try {
    const admin = await createAdmin(connection, { retries: 5 })
    closers.add('the admin client', admin.close)
    const { prefix, partitions, tierPartitions } = config.topics
    const catalogue = topicCatalogue({ prefix, partitions, tierPartitions, tiersMs: config.tiersMs })
    if (deletesTopics) {
      closers.add('the topics', async () => {
        await admin.deleteTopics({ topics: [eventsTopic, ...catalogue.map(({ name }) => name)] })
        const { groups } = await admin.listGroups()
        await Promise.all(groups.filter(({ groupId }) => groupId.startsWith(`${config.groupPrefix}.`)).map(({ groupId }) => deleteGroup(connection, groupId)))
      })
    }
    const events = { name: eventsTopic, partitions, growth: 'fixed', replication: -1, config: {} } as const
    await applyTopics(admin, await planTopics(admin, [events, ...catalogue]))

    const producer = await createProducer({ connection, brokerTime: createBrokerTime() })
    closers.add('the producer', () => producer.close())
    const follower = await follow({ connection, topics: [names.dlq, names.endpointHealth], groupPrefix, from: 'earliest', onRecord, onFailed })
    closers.add('the reader of the dead letters', follower.close)

    return {
      eventsTopic, producer,
      health: () => health,
      close: closers.close,
      async subscribe(wanted) {
        const table = await openSubscriptionTable({ connection, topic: names.subscriptions, groupPrefix: `${groupPrefix}.subscriptions`, onFailed })
        try {
          const rules = { allowsHttp: config.safety.allowsHttp, policyDefaults: config.policy }
          const writer = createSubscriptionWriter({ table, producer, topic: names.subscriptions, rules })
          return await Promise.all(wanted.map(async ({ endpoint, url, secret }) => {
            const written = await writer.create({ url, secret, eventTypes: ['*'], description: `${endpoint} endpoint of the sample` })
            if (written.kind !== 'written') throw new Error(`the subscription of ${endpoint} could not be written: ${JSON.stringify(written)}`)
            return { endpoint, subscriptionId: written.subscription.id, endpointKey: written.subscription.endpointKey }
          }))
        } finally {
          await table.close()
        }
      },
    }
  } catch (error) {
    await closers.close()
    throw error
  }
}
