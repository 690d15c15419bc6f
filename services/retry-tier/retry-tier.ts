import { tierTopicSuffix } from '../../shared/domain/hops.ts'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { AdminClient, KafkaConnection } from '../../shared/kafka/client.ts'
import type { Producer } from '../../shared/kafka/producer.ts'
import { listRetryTopics, topicNames, type RetryTopic } from '../../shared/kafka/topics.ts'
import { createTrimmer } from '../../shared/kafka/trim.ts'
import type { Log } from '../../shared/log/log.ts'
import type { RetryTierMetrics } from './metrics.ts'
import { createOnward } from './onward.ts'
import { serveTier, type ServedTier, type TierBounds } from './served-tier.ts'
import { createServedTiers } from './served-tiers.ts'
import { createSoonLine } from './soon.ts'
import { createTierLine } from './tier.ts'

export type RetryTierOptions = {
  readonly connection: KafkaConnection
  /** Gives up after a few tries, so that a broker that is away is noticed. */
  readonly admin: AdminClient
  readonly producer: Producer
  readonly brokerTime: BrokerTime
  readonly topicPrefix: string
  readonly groupPrefix: string
  /** Delays of the tiers that records may be sent to. */
  readonly configuredDelaysMs: readonly number[]
  /** Ends of topic names; null: every retry topic there is. */
  readonly servedSuffixes: readonly string[] | null
  /** Memory for records in hand, of all tiers together. */
  readonly windowBytes: number
  findFaults(topics: readonly RetryTopic[]): Promise<ReadonlyMap<string, string>>
  readonly metrics: RetryTierMetrics
  readonly log: Log
  /** How often retry topics are looked for, ms. */
  readonly lookIntervalMs?: number
  readonly trimIntervalMs?: number
  readonly sessionTimeoutMs?: number
  /** A consumer is dead for good, or we have a bug: the process must end. */
  onFailed(error: Error): void
}

export type RetryTier = {
  tiers(): readonly ServedTier[]
  /** Whatever keeps records waiting that should not: topics not served, records Kafka refuses. One line each. */
  problems(): readonly string[]
  /** Starts nothing more, waits up to `deadlineMs` for acknowledgements, commits, leaves the groups. May be called again. */
  close(deadlineMs: number): Promise<void>
}

export const defaultSessionTimeoutMs = 10_000
const defaultLookIntervalMs = 30_000
const mebibyte = 1024 * 1024
/** Below it fetches would cost more than what they bring. */
const leastFetchBytes = 64 * 1024

/** Serves every retry topic, each in a group of its own. Resolves when those that exist are served. */
export async function startRetryTier(options: RetryTierOptions): Promise<RetryTier> {
  const { connection, admin, brokerTime, configuredDelaysMs, log, metrics, sessionTimeoutMs = defaultSessionTimeoutMs } = options
  const topics = topicNames(options.topicPrefix)
  const served = createServedTiers({
    listTopics: () => listRetryTopics(admin, options.topicPrefix),
    findFaults: options.findFaults,
    serve,
    servedSuffixes: options.servedSuffixes,
    configuredDelaysMs,
    intervalMs: options.lookIntervalMs ?? defaultLookIntervalMs,
    log,
  })
  const onward = createOnward({
    producer: options.producer, brokerTime, topics, targetDelaysMs: served.targetDelaysMs, events: metrics, log,
  })

  async function serve({ name, suffix, delayMs }: RetryTopic): Promise<ServedTier> {
    const { topics: [described] } = await admin.fetchTopicMetadata({ topics: [name] })
    metrics.onServed(suffix, ['deliveries', 'rejected', 'soon', ...configuredDelaysMs.map(tierTopicSuffix)])
    return serveTier({
      suffix, topic: name, groupId: groupOf(options.groupPrefix, suffix), connection, onward, sessionTimeoutMs,
      line: delayMs === null ? createSoonLine(onward.soonReadyAt) : createTierLine(delayMs),
      bounds: boundsOf(delayMs, options.windowBytes, configuredDelaysMs.length, described?.partitions.length ?? 1),
      onJoined: () => metrics.onJoined(suffix),
      onFailed: options.onFailed,
    })
  }

  await served.start()
  const trimmer = createTrimmer({
    admin,
    targets: () => served.current().map(({ topic, groupId, consumer }) =>
      ({ topic, groupId, partitions: consumer.partitions().map(({ partition }) => partition) })),
    now: () => brokerTime.nowForWait(),
    ...(options.trimIntervalMs === undefined ? {} : { intervalMs: options.trimIntervalMs }),
    log: log.forKafka,
    onTrimmed: ({ topic }, trimmed) => metrics.onTrimmed(topic.slice(topics.retry('').length), trimmed),
  })
  return {
    tiers: served.current,
    problems: () => [...served.problems(), ...[onward.refusal()].filter((refusal) => refusal !== null)],
    async close(deadlineMs) {
      await Promise.all([trimmer.close(), served.close(deadlineMs)])
    },
  }
}

/** One group for each retry topic: a rebalance of one tier holds up no other. */
export function groupOf(groupPrefix: string, suffix: string): string {
  return `${groupPrefix}.retry.${suffix}`
}

/**
 * A tier needs no more in hand than what comes up while a fetch is under way; `soon` holds all it waits for. Each partition of a tier has a
 * bound of its own, and all together have none: one that is full of what waits for days must not keep the others from being read.
 * Long tiers wait longer at the broker: their allowance is larger, and idle fetches are what an idle process spends.
 */
function boundsOf(delayMs: number | null, windowBytes: number, tierCount: number, partitionCount: number): TierBounds {
  if (delayMs === null) return { windowBytes: windowBytes / 2, partitionWindowBytes: windowBytes / 2, maxBytesPerPartition: mebibyte, maxWaitMs: 100 }
  const partitionWindowBytes = Math.min(2 * mebibyte, windowBytes / 2 / Math.max(tierCount, 1) / partitionCount)
  return {
    windowBytes: Infinity,
    partitionWindowBytes,
    maxBytesPerPartition: Math.min(mebibyte, Math.max(leastFetchBytes, Math.ceil(partitionWindowBytes))),
    maxWaitMs: Math.min(1000, Math.max(100, Math.round(delayMs / 60))),
  }
}
