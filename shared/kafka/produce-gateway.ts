import type { Message } from 'kafkajs'
import type { KafkaConnection } from './client.ts'
import { call, createCluster, createErrorFromCode } from './cluster.ts'
import { compressionType, type CompressionName } from './compression.ts'
import { createTopicViews, type TopicViews } from './topic-views.ts'

export type PartitionMessages = { readonly topic: string; readonly partition: number; readonly messages: readonly Message[] }

/** The broker's answer for one partition of a request; `error` is null when it was written, `baseOffset` is the first message's. */
export type PartitionAnswer = {
  readonly topic: string
  readonly partition: number
  readonly error: { readonly code: number; readonly type: string; readonly isRetriable: boolean } | null
  readonly baseOffset: number
  /** Epoch ms; null unless the topic keeps LogAppendTime. */
  readonly appendedAt: number | null
}

/**
 * Produce and metadata requests below kafkajs's producer, because that one throws the first error of a whole response and drops what
 * the other partitions answered (so they are written twice), and fails for all topics when one is gone or has no leader.
 * Nothing is retried here: every method throws on the first failure.
 */
export type ProduceGateway = {
  topicViews: TopicViews['read']
  invalidate(): void
  connect(): Promise<void>
  /** One request to one broker, acknowledged by all in-sync replicas. Throws when no answer came: written or not is then unknown. */
  produce(nodeId: number, groups: readonly PartitionMessages[]): Promise<readonly PartitionAnswer[]>
  close(): Promise<void>
}

const produceTimeoutMs = 30_000

type PartitionResponse = { partition: number; errorCode: number; baseOffset: string; logAppendTime: string }
type ProduceAnswer = { readonly topics: readonly { topicName: string; partitions: readonly PartitionResponse[] }[] }

export function createProduceGateway(connection: KafkaConnection, compression: CompressionName): ProduceGateway {
  const cluster = createCluster(connection)
  const views = createTopicViews(cluster)
  return {
    topicViews: views.read,
    invalidate: views.invalidate,
    connect: () => cluster.connect(),
    async produce(nodeId, groups) {
      const broker = await cluster.brokerPool.findBroker({ nodeId: String(nodeId) })
      const answer = await call<ProduceAnswer>(broker, 'Produce', {
        acks: -1, timeout: produceTimeoutMs, compression: compressionType(compression), topicData: topicData(groups),
      })
      return answer.topics.flatMap(({ topicName, partitions }) => partitions.map((partition) => answerOf(topicName, partition)))
    },
    close: () => cluster.disconnect(),
  }
}

function topicData(groups: readonly PartitionMessages[]): readonly object[] {
  const byTopic = Map.groupBy(groups, ({ topic }) => topic)
  return [...byTopic].map(([topic, ofTopic]) => ({
    topic, partitions: ofTopic.map(({ partition, messages }) => ({ partition, messages })),
  }))
}

function answerOf(topic: string, { partition, errorCode, baseOffset, logAppendTime }: PartitionResponse): PartitionAnswer {
  const { type, retriable } = errorCode === 0 ? { type: '', retriable: false } : createErrorFromCode(errorCode)
  const appendedAt = Number(logAppendTime)
  return {
    topic, partition,
    error: errorCode === 0 ? null : { code: errorCode, type, isRetriable: retriable },
    baseOffset: Number(baseOffset),
    appendedAt: appendedAt >= 0 ? appendedAt : null,
  }
}
