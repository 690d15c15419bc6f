import type { Admin } from 'kafkajs'
import { parseTierSuffix, tierTopicSuffix } from '../domain/hops.ts'

/** Full names of the topics of one installation. */
export type TopicNames = {
  readonly rejected: string
  readonly subscriptions: string
  readonly deliveries: string
  readonly endpointHealth: string
  readonly attempts: string
  readonly dlq: string
  /** Where waits shorter than the smallest tier are spent. */
  readonly soon: string
  /** The tier whose records wait `delayMs`. */
  tier(delayMs: number): string
  /** A retry topic by the last part of its name: `soon`, `10s`. */
  retry(suffix: string): string
}

/** `prefix` with its dot: `webhooks.`; may be empty. */
export function topicNames(prefix: string): TopicNames {
  const retry = (suffix: string): string => `${prefix}retry.${suffix}`
  return {
    rejected: `${prefix}rejected`,
    subscriptions: `${prefix}subscriptions`,
    deliveries: `${prefix}deliveries`,
    endpointHealth: `${prefix}endpoint-health`,
    attempts: `${prefix}attempts`,
    dlq: `${prefix}dlq`,
    soon: retry(soonSuffix),
    tier: (delayMs) => retry(tierTopicSuffix(delayMs)),
    retry,
  }
}

/** A topic as it should be. */
export type TopicSpec = {
  readonly name: string
  readonly partitions: number
  /**
   * `grows`: more partitions may be added later. `fixed`: never, as records of one key must stay in one partition for compaction.
   * `single`: exactly one, as its offsets are versions.
   */
  readonly growth: 'grows' | 'fixed' | 'single'
  /** Replicas when it is created; -1 is the brokers' default. */
  readonly replication: number
  /** Kafka's own names and text values, every one set on the topic itself. */
  readonly config: Readonly<Record<string, string>>
}

export type CatalogueOptions = {
  readonly prefix: string
  readonly partitions?: number
  readonly tierPartitions?: number
  readonly replication?: number
  /** Delays of the tiers, ms. */
  readonly tiersMs: readonly number[]
  /** Largest batch of records each topic takes, bytes. */
  readonly maxMessageBytes?: number
}

const soonSuffix = 'soon'
const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Longer than any delivery lives (14 d, or its subscription's own schedule of at most 14 d), so nothing unread is ever deleted. */
const waitingRetentionMs = 21 * dayMs
/** The brokers' own default, set on the topics so that a smaller one of the cluster does not refuse our largest records. */
const defaultMaxMessageBytes = 1_048_588

/** Every topic posthouse itself writes. The events' own topics are the user's. */
export function topicCatalogue(options: CatalogueOptions): readonly TopicSpec[] {
  const { prefix, partitions = 12, tierPartitions = 3, replication = -1, maxMessageBytes = defaultMaxMessageBytes } = options
  const names = topicNames(prefix)
  const spec = (name: string, count: number, growth: TopicSpec['growth'], config: Readonly<Record<string, string | number>>): TopicSpec => ({
    name, partitions: count, growth, replication,
    config: textValues({
      'message.timestamp.type': 'LogAppendTime', 'retention.bytes': -1, 'max.message.bytes': maxMessageBytes, ...config,
    }),
  })
  // Only closed segments are trimmed: short ones give the disk back soon.
  const waiting = (retentionMs: number) => ({ 'cleanup.policy': 'delete', 'retention.ms': retentionMs, 'segment.ms': hourMs })
  // Only closed segments are compacted: at the default of a week a quiet topic would keep every version that long.
  const compaction = { 'min.cleanable.dirty.ratio': 0.1, 'segment.ms': dayMs }
  const compactedFor30Days = { 'cleanup.policy': 'compact,delete', 'retention.ms': 30 * dayMs, ...compaction }

  return [
    spec(names.rejected, partitions, 'grows', { 'cleanup.policy': 'delete', 'retention.ms': 30 * dayMs, 'segment.ms': dayMs }),
    spec(names.subscriptions, 1, 'single', { 'cleanup.policy': 'compact', 'delete.retention.ms': 30 * dayMs, ...compaction }),
    spec(names.deliveries, partitions, 'grows', waiting(waitingRetentionMs)),
    spec(names.soon, tierPartitions, 'grows', waiting(waitingRetentionMs)),
    ...[...new Set(options.tiersMs)].sort((a, b) => a - b).map((delayMs) =>
      spec(names.tier(delayMs), tierPartitions, 'grows', waiting(delayMs + waitingRetentionMs))),
    spec(names.endpointHealth, partitions, 'fixed', compactedFor30Days),
    spec(names.attempts, partitions, 'grows', { 'cleanup.policy': 'delete', 'retention.ms': 7 * dayMs, 'segment.ms': dayMs }),
    spec(names.dlq, partitions, 'fixed', compactedFor30Days),
  ]
}

/** A retry topic there is on the cluster; `delayMs` is null for `retry.soon`. */
export type RetryTopic = { readonly name: string; readonly suffix: string; readonly delayMs: number | null }

/** Every `retry.*` topic of the installation, of the present configuration or an earlier one, shortest delay first. */
export async function listRetryTopics(admin: Pick<Admin, 'listTopics'>, prefix: string): Promise<readonly RetryTopic[]> {
  const start = topicNames(prefix).retry('')
  return (await admin.listTopics())
    .filter((name) => name.startsWith(start))
    .map((name) => ({ name, suffix: name.slice(start.length), delayMs: parseTierSuffix(name.slice(start.length)) }))
    .filter(({ suffix, delayMs }) => delayMs !== null || suffix === soonSuffix)
    .sort((a, b) => (a.delayMs ?? 0) - (b.delayMs ?? 0))
}

function textValues(config: Readonly<Record<string, string | number>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(config).map(([name, value]) => [name, String(value)]))
}
