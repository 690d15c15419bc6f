import assert from 'node:assert/strict'
import kafkajs, { type IHeaders } from 'kafkajs'
import type { Attempt, DeadLetter } from '../../shared/domain/delivery.ts'
import { formatDuration } from '../../shared/domain/duration.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createAdmin, createKafka } from '../../shared/kafka/client.ts'
import type { CompressionName } from '../../shared/kafka/compression.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { applyTopics, planTopics } from '../../shared/kafka/provision.ts'
import { listRetryTopics, topicCatalogue, topicNames, type TopicNames } from '../../shared/kafka/topics.ts'
import { decodeAttempt } from '../../shared/records/attempt-codec.ts'
import { decodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import type { NewSubscription, SubscriptionChange } from '../../shared/subscriptions/draft.ts'
import { openSubscriptionTable } from '../../shared/subscriptions/table.ts'
import { createSubscriptionWriter } from '../../shared/subscriptions/write.ts'
import type { ServiceName } from '../../shared/config/settings.ts'
import { kafkaForTests, testConnection, testTopicPrefix, type Cleanup } from '../support/kafka.ts'
import { startService, type ServiceProcess } from '../support/process.ts'
import { readTopic, type ReadRecord } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'
import { metricOf } from './metrics.ts'

const { CompressionTypes } = kafkajs
const codecs = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
} as const satisfies Record<CompressionName, unknown>

export type PipelineService = Exclude<ServiceName, 'admin'>
export type Environment = Readonly<Record<string, string>>

export type PipelineOptions = {
  readonly partitions?: number
  readonly tierPartitions?: number
  readonly tiersMs?: readonly number[]
  readonly scheduleMs?: readonly number[]
  /** Of every service; wins over what the pipeline sets. */
  readonly env?: Environment
  /** Another broker than the one of the run, which the test starts and stops: nothing is deleted on it afterwards. */
  readonly brokers?: readonly string[]
}

export type Sent = { readonly id: string; readonly type?: string; readonly fields?: object; readonly headers?: IHeaders; readonly partition?: number }

/** A generous bound for whatever must happen in the end: only a test that fails uses it up. */
export const patienceMs = 90_000

/** The topics of one installation, its services as processes of their own, and what a test needs to drive and to watch them. */
export async function openPipeline(t: Cleanup, options: PipelineOptions = {}) {
  const { partitions = 4, tierPartitions = 1, tiersMs = [500, 1_000], scheduleMs = [500, 1_000] } = options
  const isOwnBroker = options.brokers !== undefined
  const brokers = options.brokers ?? kafkaForTests().brokers
  const prefix = testTopicPrefix('end-to-end')
  const groupPrefix = prefix.slice(0, -1)
  const topics: TopicNames = topicNames(prefix)
  const events = `${prefix}events`
  const connection = testConnection({ brokers })
  const admin = await createAdmin(connection, { retries: 50 })
  const producer = await createProducer({ connection, brokerTime: createBrokerTime() })
  const userProducer = createKafka(connection).producer({ allowAutoTopicCreation: false, retry: { retries: 50, maxRetryTime: 2_000 } })
  const processes: ServiceProcess[] = []
  const closers: (() => Promise<unknown>)[] = []

  // One hook, as the order matters: members leave, then groups and topics can be deleted.
  t.after(async () => {
    await Promise.all(processes.map((process) => process.kill()))
    await Promise.all(closers.map((close) => close()))
    await Promise.all([producer.close(1_000), userProducer.disconnect()])
    if (!isOwnBroker) await deleteAll()
    await admin.close()
  })

  const catalogue = topicCatalogue({ prefix, partitions, tierPartitions, tiersMs })
  await applyTopics(admin, await planTopics(admin, catalogue))
  await admin.createTopics({ topics: [{ topic: events, numPartitions: partitions }] })
  await userProducer.connect()

  const table = await openSubscriptionTable({
    connection, topic: topics.subscriptions, groupPrefix: `${groupPrefix}.test`, onFailed: (error) => { throw error },
  })
  closers.push(() => table.close())
  const writer = createSubscriptionWriter({ table, producer, topic: topics.subscriptions, rules: { allowsHttp: true, policyDefaults: defaultPolicy } })

  /** Groups whose members were killed are still held for a session; they own no topic any more, and the broker forgets them by itself. */
  async function deleteAll(): Promise<void> {
    const groups = (await admin.listGroups()).groups.map(({ groupId }) => groupId).filter((groupId) => groupId.startsWith(groupPrefix))
    await admin.deleteGroups(groups).catch(() => undefined)
    await admin.deleteTopics({ topics: (await admin.listTopics()).filter((topic) => topic.startsWith(prefix)) })
  }

  const environment: Environment = {
    KAFKA_BROKERS: brokers.join(','), POSTHOUSE_TOPIC_PREFIX: prefix, POSTHOUSE_GROUP_PREFIX: groupPrefix,
    POSTHOUSE_TIERS: tiersMs.map(formatDuration).join(','), POSTHOUSE_RETRY_SCHEDULE: scheduleMs.map(formatDuration).join(','),
    POSTHOUSE_EVENTS_START: 'earliest', POSTHOUSE_ALLOW_HTTP: 'true', POSTHOUSE_ALLOW_ADDRESSES: '127.0.0.0/8',
    POSTHOUSE_HTTP_HOST: '127.0.0.1', POSTHOUSE_LOG_LEVEL: 'warn', ...options.env,
  }

  async function start(service: PipelineService, env: Environment = {}): Promise<ServiceProcess> {
    const process = await startService({ after: () => undefined }, { file: `services/${service}/main.ts`, env: { ...environment, ...env } })
    processes.push(process)
    return process
  }

  /** Retry topics there are now, of the configuration or not. */
  const retryTopics = () => listRetryTopics(admin, prefix)

  const count = async (topic: string): Promise<number> =>
    (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0)

  /** Records of a topic that its group has not finished with. */
  async function unfinished(topic: string, groupId: string): Promise<number> {
    const [ends, [committed]] = await Promise.all([admin.fetchTopicOffsets(topic), admin.fetchOffsets({ groupId, topics: [topic] })])
    return ends.reduce((sum, { partition, high, low }) => {
      const offset = Number(committed?.partitions.find((one) => one.partition === partition)?.offset ?? -1)
      return sum + Number(high) - (offset < 0 ? Number(low) : offset)
    }, 0)
  }

  /** What is still under way: read and not committed as done, or not read yet. In the order of the flow, so that nothing slips past. */
  async function underWay(): Promise<Record<string, number>> {
    const found: Record<string, number> = { events: await unfinished(events, `${groupPrefix}.router`) }
    const look = async (): Promise<void> => {
      found['deliveries'] = Math.max(found['deliveries'] ?? 0, await unfinished(topics.deliveries, `${groupPrefix}.delivery`))
      for (const { name, suffix } of await retryTopics()) {
        found[suffix] = Math.max(found[suffix] ?? 0, await unfinished(name, `${groupPrefix}.retry.${suffix}`))
      }
    }
    // Twice: what goes round from deliveries to a tier and back is seen at least once.
    await look()
    await look()
    return found
  }

  async function untilQuiet(deadlineMs = patienceMs): Promise<void> {
    let last = {}
    await until(async () => {
      const now = await underWay()
      last = now
      return Object.values(now).every((records) => records === 0)
    }, { deadlineMs, intervalMs: 100, message: () => `nothing to be under way any more; left: ${JSON.stringify(last)}` })
  }

  return {
    prefix, groupPrefix, topics, events, admin, producer, connection, catalogue, environment, table, writer, start, count, untilQuiet, underWay, retryTopics,

    /** Starts so many of each, all at once, and waits until they are ready. */
    async startAll({ router = 1, delivery = 1, retryTier = 1 } = {}, env: Environment = {}) {
      const many = (service: PipelineService, wanted: number) => Promise.all(Array.from({ length: wanted }, () => start(service, env)))
      const [routers, deliveries, retryTiers] = await Promise.all([many('router', router), many('delivery', delivery), many('retry-tier', retryTier)])
      await Promise.all([...routers, ...deliveries, ...retryTiers].map((process) => process.waitReady(patienceMs)))
      return { routers, deliveries, retryTiers }
    },

    /** Through the subscription writer: what is sent once this has resolved reaches it. */
    async subscribe(url: string, wanted: Partial<NewSubscription> = {}): Promise<StoredSubscription> {
      const written = await writer.create({ url, eventTypes: ['*'], ...wanted })
      assert.equal(written.kind, 'written', JSON.stringify(written))
      return written.subscription
    },

    async update(id: string, change: SubscriptionChange): Promise<void> {
      const written = await writer.update(id, change)
      assert.equal(written.kind, 'written', JSON.stringify(written))
    },

    async remove(id: string): Promise<void> {
      assert.equal((await writer.delete(id)).kind, 'deleted')
    },

    /** Writes events as a user's own producer does, and resolves when all replicas have them. */
    async send(sent: readonly Sent[], { compression = 'none', topic = events }: { compression?: CompressionName; topic?: string } = {}): Promise<void> {
      await userProducer.send({
        topic, acks: -1, compression: codecs[compression],
        messages: sent.map(({ id, type = 'order.created', fields = {}, headers, partition }) => ({
          key: id, value: JSON.stringify({ id, type, created: 1_548_892_800, data: fields }),
          ...(headers === undefined ? {} : { headers }), ...(partition === undefined ? {} : { partition }),
        })),
      })
    },

    read: (topic: string): Promise<ReadRecord[]> => readTopic(topic, { connection }),
    attempts: async (): Promise<Attempt[]> => (await readTopic(topics.attempts, { connection })).map(({ value }) => decodeAttempt(value!)),
    deadLetters: async (): Promise<DeadLetter[]> => (await readTopic(topics.dlq, { connection }))
      .filter(({ value }) => value !== null).map(({ value }) => decodeDeadLetter(value!)),
    rejected: (): Promise<ReadRecord[]> => readTopic(topics.rejected, { connection }),

    /** A metric summed over processes; 0 where one answers without it. */
    async metric(of: readonly ServiceProcess[], name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
      const values = await Promise.all(of.map((process) => metricOf(process.url, name, labels)))
      return values.reduce((sum, value) => sum + value, 0)
    },
  }
}

export type Pipeline = Awaited<ReturnType<typeof openPipeline>>
