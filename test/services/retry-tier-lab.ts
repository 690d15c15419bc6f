import type { TestContext } from 'node:test'
import type { Registry } from 'prom-client'
import { createBrokerTime, type BrokerTime } from '../../shared/kafka/broker-time.ts'
import { createAdmin, type AdminClient } from '../../shared/kafka/client.ts'
import { createProducer, type Producer } from '../../shared/kafka/producer.ts'
import { applyTopics, planTopics } from '../../shared/kafka/provision.ts'
import { topicCatalogue, topicNames, type TopicNames } from '../../shared/kafka/topics.ts'
import { createLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/registry.ts'
import { dueHeader } from '../../shared/records/record-headers.ts'
import { createRetryTierMetrics, type RetryTierMetrics } from '../../services/retry-tier/metrics.ts'
import type { Hopped } from '../../services/retry-tier/onward.ts'
import { startRetryTier, type RetryTier, type RetryTierOptions } from '../../services/retry-tier/retry-tier.ts'
import { findTimestampFaults } from '../../services/retry-tier/topic-checks.ts'
import { testConnection, testTopic, testTopicPrefix } from '../support/kafka.ts'
import { readTopic, type ReadRecord } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'

export type Put = {
  readonly key?: string
  readonly value?: Buffer | null
  readonly dueAt?: number
  readonly partition?: number
  readonly headers?: readonly { readonly name: string; readonly value: Buffer | string }[]
}

export type Running = {
  readonly retryTier: RetryTier
  readonly producer: Producer
  readonly registry: Registry
  readonly hops: Hopped[]
  readonly failures: Error[]
  close(): Promise<void>
}

export type StartOptions = Partial<Pick<RetryTierOptions, 'configuredDelaysMs' | 'servedSuffixes' | 'brokerTime' | 'lookIntervalMs' | 'trimIntervalMs' | 'windowBytes'>>

/** One for all: each would listen for the end of the process. */
const log = createLog({ service: 'retry-tier', level: 'silent' })

/** The retry topics of one test with whatever serves them; all of it is gone when the test ends. */
export type RetryLab = {
  readonly prefix: string
  readonly groupPrefix: string
  readonly names: TopicNames
  readonly admin: AdminClient
  readonly brokerTime: BrokerTime
  /** Makes the topics of tiers, which need not be configured. */
  createTiers(tiersMs: readonly number[]): Promise<void>
  /** Serves in this process. */
  start(options?: StartOptions): Promise<Running>
  /** Writes into a retry topic and returns the append time, epoch ms. */
  put(suffix: string, record: Put): Promise<number>
  /** What is in `deliveries` once there are so many. */
  deliveries(count: number, deadlineMs?: number): Promise<ReadRecord[]>
}

export async function openRetryLab(t: TestContext, tiersMs: readonly number[], { partitions = 2 } = {}): Promise<RetryLab> {
  const prefix = testTopicPrefix('retry-tier')
  const groupPrefix = testTopic('retry-tier')
  const names = topicNames(prefix)
  const connection = testConnection()
  const admin = await createAdmin(connection, { retries: 10 })
  const brokerTime = createBrokerTime()
  const producer = await createProducer({ connection, brokerTime })
  const running: Running[] = []
  // One hook, as the order matters: members leave, then groups and topics can be deleted.
  t.after(async () => {
    await Promise.all(running.map((one) => one.close()))
    await producer.close()
    const groups = (await admin.listGroups()).groups.map(({ groupId }) => groupId).filter((groupId) => groupId.startsWith(groupPrefix))
    await until(() => admin.deleteGroups(groups).then(() => true, () => false), { deadlineMs: 20_000, intervalMs: 200, message: 'groups without members' })
    await admin.deleteTopics({ topics: (await admin.listTopics()).filter((topic) => topic.startsWith(prefix)) })
    await admin.close()
  })

  async function createTiers(delaysMs: readonly number[]): Promise<void> {
    const catalogue = topicCatalogue({ prefix, partitions: 2, tierPartitions: partitions, tiersMs: delaysMs })
    const needed = [names.deliveries, names.rejected, names.soon, ...delaysMs.map(names.tier)]
    await applyTopics(admin, await planTopics(admin, catalogue.filter(({ name }) => needed.includes(name))))
  }

  async function start(options: StartOptions = {}): Promise<Running> {
    const brokerTime = options.brokerTime ?? createBrokerTime()
    const producer = await createProducer({ connection, brokerTime })
    const ours = createMetrics({ version: 'test', service: 'retry-tier' })
    const hops: Hopped[] = []
    const failures: Error[] = []
    let retryTier: RetryTier | null = null
    const series = createRetryTierMetrics(ours, () => retryTier?.tiers() ?? [])
    const metrics: RetryTierMetrics = {
      ...series,
      onHop(hop) {
        hops.push(hop)
        series.onHop(hop)
      },
    }
    const started = await startRetryTier({
      connection, admin, producer, brokerTime, metrics,
      topicPrefix: prefix, groupPrefix,
      configuredDelaysMs: tiersMs, servedSuffixes: null, windowBytes: 64 * 1024 * 1024,
      findFaults: (topics) => findTimestampFaults(admin, topics),
      log,
      sessionTimeoutMs: 6_000,
      ...options,
      onFailed: (error) => failures.push(error),
    })
    retryTier = started
    const close = async (): Promise<void> => {
      await started.close(5_000)
      await producer.close()
    }
    const one = { retryTier: started, producer, registry: ours.registry, hops, failures, close }
    running.push(one)
    return one
  }

  async function put(suffix: string, { key = 'ep_a', value = Buffer.from('a delivery'), dueAt, partition, headers = [] }: Put): Promise<number> {
    const due = dueAt === undefined ? [] : [{ name: dueHeader, value: String(dueAt) }]
    const { appendedAt } = await producer.send({
      topic: names.retry(suffix), key, value, headers: [...due, ...headers], ...(partition === undefined ? {} : { partition }),
    })
    if (appendedAt === null) throw new Error('a retry topic of the test keeps no append times')
    return appendedAt
  }

  async function count(topic: string): Promise<number> {
    return (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0)
  }

  async function deliveries(wanted: number, deadlineMs = 30_000): Promise<ReadRecord[]> {
    let found = 0
    await until(async () => (found = await count(names.deliveries)) >= wanted, {
      deadlineMs, intervalMs: 50, message: () => `${wanted} deliveries (there are ${found})`,
    })
    return readTopic(names.deliveries)
  }

  await createTiers(tiersMs)
  // One acknowledgement, so that due times are given in the brokers' own time.
  await producer.send({ topic: names.rejected, key: null, value: Buffer.from('clock') })
  return { prefix, groupPrefix, names, admin, brokerTime, createTiers, start, put, deliveries }
}
