import { deliveryId, endpointKey } from '../../shared/domain/ids.ts'
import type { Attempt, DeadLetter, Delivery } from '../../shared/domain/delivery.ts'
import { defaultPolicy, noPolicy, type Policy } from '../../shared/domain/policy.ts'
import type { Subscription } from '../../shared/domain/subscription.ts'
import { createHttpClient } from '../../shared/http/client.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { applyTopics, planTopics } from '../../shared/kafka/provision.ts'
import { topicCatalogue, topicNames, type TopicNames } from '../../shared/kafka/topics.ts'
import { createLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/registry.ts'
import { decodeAttempt } from '../../shared/records/attempt-codec.ts'
import { decodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import { encodeDelivery } from '../../shared/records/delivery-codec.ts'
import { encodeSubscription } from '../../shared/records/subscription-codec.ts'
import { startDelivery, type DeliveryOptions } from '../../services/delivery/delivery.ts'
import { deleteTopicsAfter, testConnection, testTopicPrefix, withAdmin, type Cleanup } from '../support/kafka.ts'
import { readTopic, type ReadRecord } from '../support/topic-reader.ts'

/** A delivery service on topics of its own, in this process, and what a test needs to drive it and to look at what it wrote. */
export async function openDeliveryLab(t: Cleanup, settings: { tiersMs?: readonly number[]; partitions?: number } = {}) {
  const { tiersMs = [1000, 2000, 5000], partitions = 2 } = settings
  const prefix = testTopicPrefix('delivery')
  const topics: TopicNames = topicNames(prefix)
  deleteTopicsAfter(t, prefix)
  await withAdmin(async (admin) => applyTopics(admin, await planTopics(admin, topicCatalogue({ prefix, partitions, tierPartitions: 1, tiersMs }))))
  const brokerTime = createBrokerTime()
  const producer = await createProducer({ connection: testConnection(), brokerTime })
  const lines: Record<string, unknown>[] = []

  async function start(overrides: Partial<DeliveryOptions> = {}) {
    const metrics = createMetrics({ version: 'test', service: 'delivery' })
    const { registry } = metrics
    const ownTime = createBrokerTime()
    const ownProducer = await createProducer({ connection: testConnection(), brokerTime: ownTime })
    const http = createHttpClient()
    const failures: Error[] = []
    const log = createLog({
      service: 'delivery', level: 'info', destination: { write: (line: string) => { lines.push(JSON.parse(line) as Record<string, unknown>) } },
    })
    const delivery = await startDelivery({
      connection: testConnection({ log: log.forKafka }), producer: ownProducer, brokerTime: ownTime, http, metrics, log,
      topicPrefix: prefix, groupPrefix: prefix, tiersMs, parkDelaysMs: [1000, 2000], policyDefaults: policyOf([1000, 2000]),
      expiryMs: 14 * 86_400_000, windowBytes: 64 * 1024 * 1024, maxInFlight: 256, endpointCapStart: 10, endpointCapMax: 64, keepsExcerpt: true,
      onFailed: (error) => { failures.push(error) },
      ...overrides,
    })
    const stop = async (deadlineMs = 5_000): Promise<void> => {
      await delivery.close(deadlineMs)
      await http.destroy()
      await ownProducer.close()
    }
    t.after(() => stop(0))
    const metric = async (name: string, labels: Record<string, string> = {}): Promise<number> => {
      const found = (await registry.getSingleMetric(name)?.get())?.values ?? []
      return found.filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value)).reduce((sum, one) => sum + one.value, 0)
    }
    return { delivery, registry, failures, stop, metric }
  }

  // After the services: hooks run in the order they were registered.
  t.after(() => producer.close())
  let sequence = 0
  return {
    prefix, topics, tiersMs, brokerTime, lines, start,

    async subscribe(url: string, overrides: Partial<Subscription> = {}): Promise<Subscription> {
      const subscription: Subscription = {
        id: `sub_${++sequence}`, tenant: null, url, endpointKey: endpointKey(url), eventTypes: ['*'], state: 'active', signatureScheme: 'stripe',
        secrets: [{ secret: 'whsec_a-secret-for-tests', createdAt: 1, expiresAt: null }], headers: [], policy: noPolicy, description: null,
        createdAt: 1, updatedAt: 1, ...overrides,
      }
      await producer.send({ topic: topics.subscriptions, key: subscription.id, value: encodeSubscription(subscription) })
      return subscription
    },
    remove: (id: string) => producer.send({ topic: topics.subscriptions, key: id, value: null }),

    /** Writes a delivery as the router does. */
    async deliver(subscription: Pick<Subscription, 'id' | 'endpointKey'>, overrides: Partial<Delivery> = {}): Promise<Delivery> {
      const eventId = overrides.eventId ?? `evt_${++sequence}`
      const body = overrides.body ?? Buffer.from(`{"id":"${eventId}"}`)
      const delivery: Delivery = {
        id: deliveryId({ tenant: null, source: 'test', eventId, subscriptionId: subscription.id }), replay: 0, subscriptionId: subscription.id,
        tenant: null, eventId, eventType: 'order.created', routedAt: Math.round(brokerTime.nowForDue()),
        origin: { topic: 'events', partition: 0, offset: 1, timestamp: Date.now() }, sourceKey: null, sourceHeaders: [],
        attemptsMade: 0, lastWaitMs: 0, attempts: [], ...overrides, body,
      }
      await producer.send({ topic: topics.deliveries, key: subscription.endpointKey, value: encodeDelivery(delivery) })
      return delivery
    },
    produce: producer.send,

    attempts: async (): Promise<Attempt[]> => (await readTopic(topics.attempts)).map(({ value }) => decodeAttempt(value!)),
    deadLetters: async (): Promise<DeadLetter[]> =>
      (await readTopic(topics.dlq)).filter(({ value }) => value !== null).map(({ value }) => decodeDeadLetter(value!)),
    /** What waits in all tiers and soon. */
    async waiting(): Promise<ReadRecord[]> {
      const all = await Promise.all([topics.soon, ...tiersMs.map((tier) => topics.tier(tier))].map((topic) => readTopic(topic)))
      return all.flat()
    },
  }
}

/** The default policy with a schedule of its own. */
export const policyOf = (scheduleMs: readonly number[]): Policy => ({ ...defaultPolicy, scheduleMs, maxAttempts: scheduleMs.length + 1, timeoutMs: 2_000 })
