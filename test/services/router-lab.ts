import type { TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import type { Delivery } from '../../shared/domain/delivery.ts'
import { endpointKey } from '../../shared/domain/ids.ts'
import { noPolicy } from '../../shared/domain/policy.ts'
import type { Subscription } from '../../shared/domain/subscription.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createAdmin, createKafka } from '../../shared/kafka/client.ts'
import type { CompressionName } from '../../shared/kafka/compression.ts'
import { createProducer, type Producer, type ProducerOptions } from '../../shared/kafka/producer.ts'
import { applyTopics, planTopics } from '../../shared/kafka/provision.ts'
import { topicCatalogue, topicNames } from '../../shared/kafka/topics.ts'
import { createLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/registry.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { encodeSubscription } from '../../shared/records/subscription-codec.ts'
import { wireOf } from '../../shared/records/wire.ts'
import { createRouterMetrics } from '../../services/router/metrics.ts'
import { startRouter, type RouterOptions } from '../../services/router/router.ts'
import { testConnection, testTopicPrefix } from '../support/kafka.ts'
import { readTopic, type ReadRecord } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'

const { CompressionTypes } = kafkajs
const codecs = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
} as const satisfies Record<CompressionName, unknown>

export type Put = { readonly key?: string; readonly value: string | Buffer | null; readonly headers?: Readonly<Record<string, Buffer | string | readonly string[]>>; readonly partition?: number }
export type Routed = { readonly record: ReadRecord; readonly delivery: Delivery }

/** An Avro event in single-object encoding. */
export function avroEvent(event: { id: string; type: string; created: number; tenant?: string; data: string }): Buffer {
  return wireOf('event').write({ tenant: null, ...event }, 1024)
}

export const jsonEvent = (id: string, fields: object = {}): string => JSON.stringify({ id, type: 'order.created', ...fields })

/** The topics of one installation, a router or more on them, and what a test needs to drive them; all of it is gone when the test ends. */
export async function openRouterLab(t: TestContext, { partitions = 2 } = {}) {
  const prefix = testTopicPrefix('router')
  const groupPrefix = prefix.slice(0, -1)
  const topics = topicNames(prefix)
  const events = `${prefix}events`
  const connection = testConnection()
  const admin = await createAdmin(connection, { retries: 10 })
  const producer = await createProducer({ connection, brokerTime: createBrokerTime() })
  const kafkajsProducer = createKafka(connection).producer({ allowAutoTopicCreation: false })
  const closers: (() => Promise<unknown>)[] = []
  let sequence = 0

  // One hook, as the order matters: members leave, then groups and topics can be deleted.
  t.after(async () => {
    await Promise.all(closers.map((close) => close()))
    await Promise.all([producer.close(), kafkajsProducer.disconnect()])
    await until(async () => {
      const groups = (await admin.listGroups()).groups.map(({ groupId }) => groupId).filter((groupId) => groupId.startsWith(groupPrefix))
      await admin.deleteGroups(groups).catch(() => undefined)
      // The group of a table reader that was killed has its member for 30 s more and then nothing that would keep it.
      return groups.every((groupId) => groupId.includes('.router.subscriptions.'))
    }, { deadlineMs: 40_000, intervalMs: 200, message: 'groups without members' })
    await admin.deleteTopics({ topics: (await admin.listTopics()).filter((topic) => topic.startsWith(prefix)) })
    await admin.close()
  })

  const catalogue = topicCatalogue({ prefix, partitions, tiersMs: [] })
  const createTopic = async (name: string): Promise<void> => {
    await applyTopics(admin, await planTopics(admin, catalogue.filter((spec) => spec.name === name)))
  }

  async function start(overrides: Partial<RouterOptions> = {}, producerOptions: Partial<ProducerOptions> = {}) {
    const metrics = createMetrics({ version: 'test', service: 'router' })
    const brokerTime = createBrokerTime()
    const own: Producer = await createProducer({ connection: overrides.connection ?? connection, brokerTime, ...producerOptions })
    const failures: Error[] = []
    const router = await startRouter({
      connection, producer: own, brokerTime, log: silent, metrics: createRouterMetrics(metrics),
      topicPrefix: prefix, groupPrefix, eventsTopics: [events], startPosition: 'earliest',
      door: { idField: 'id', tenantField: 'tenant', type: { kind: 'field', name: 'type' } },
      windowBytes: 32 * 1024 * 1024, sessionTimeoutMs: 6_000,
      onFailed: (error) => { failures.push(error) },
      ...overrides,
    })
    const stop = async (deadlineMs = 5_000): Promise<void> => {
      await router.close(deadlineMs)
      await own.close(deadlineMs)
    }
    closers.push(() => stop(0))
    const metric = async (name: string, labels: Record<string, string> = {}): Promise<number> => {
      const found = (await metrics.registry.getSingleMetric(name)?.get())?.values ?? []
      return found.filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value)).reduce((sum, one) => sum + one.value, 0)
    }
    return { router, producer: own, brokerTime, metrics, failures, stop, metric }
  }

  async function count(topic: string): Promise<number> {
    return (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0)
  }

  async function records(topic: string, wanted: number, deadlineMs = 30_000): Promise<ReadRecord[]> {
    let found = 0
    await until(async () => (found = await count(topic)) >= wanted, {
      deadlineMs, intervalMs: 50, message: () => `${wanted} records in ${topic} (there are ${found})`,
    })
    return readTopic(topic)
  }

  await applyTopics(admin, await planTopics(admin, catalogue))
  await admin.createTopics({ topics: [{ topic: events, numPartitions: partitions }] })
  await kafkajsProducer.connect()

  return {
    prefix, groupPrefix, topics, events, admin, producer, connection, createTopic, start, count, records,
    /** Stops something else of the test's before the groups are deleted. */
    closeFirst: (close: () => Promise<unknown>): void => { closers.push(close) },

    async subscribe(overrides: Partial<Subscription> = {}): Promise<Subscription> {
      sequence += 1
      const url = overrides.url ?? `https://receiver.example/${sequence}`
      const subscription: Subscription = {
        id: `sub_${sequence}`, tenant: null, url, endpointKey: endpointKey(url), eventTypes: ['*'], state: 'active', signatureScheme: 'stripe',
        secrets: [{ secret: 'whsec_a-secret-for-tests', createdAt: 1, expiresAt: null }], headers: [], policy: noPolicy, description: null,
        createdAt: 1, updatedAt: 1, ...overrides,
      }
      await producer.send({ topic: topics.subscriptions, key: subscription.id, value: encodeSubscription(subscription) })
      return subscription
    },

    /** In this order, as long as they fit into one batch (500 records, 512 KiB). */
    async put(messages: readonly Put[], topic = events): Promise<void> {
      await Promise.all(messages.map(({ key = null, value, headers = {}, partition }) => producer.send({
        topic, key, value: typeof value === 'string' ? Buffer.from(value) : value,
        headers: Object.entries(headers).flatMap(([name, values]) => [values].flat().map((value) => ({ name, value }))),
        ...(partition === undefined ? {} : { partition }),
      })))
    },

    /** As another client would; kafkajs's own producer, as it compresses. It may write a message twice where a partition has no leader yet. */
    async putCompressed(values: readonly string[], compression: CompressionName, topic: string): Promise<void> {
      await kafkajsProducer.send({ topic, acks: -1, compression: codecs[compression], messages: values.map((value) => ({ value })) })
    },

    async deliveries(wanted: number, deadlineMs?: number): Promise<Routed[]> {
      return (await records(topics.deliveries, wanted, deadlineMs)).map((record) => ({ record, delivery: decodeDelivery(record.value!) }))
    },
  }
}

export type RouterLab = Awaited<ReturnType<typeof openRouterLab>>

/** One for all: each would listen for the end of the process. */
const silent = createLog({ service: 'router', level: 'silent' })
