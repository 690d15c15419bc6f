import { createRequire } from 'node:module'
import type { Message } from 'kafkajs'
import { createKafka, type KafkaConnection } from './client.ts'
import { compressionType, type CompressionName } from './compression.ts'

/** A topic as the brokers describe it: an error by its protocol name, or the leader (node id, -1 for none) of each partition. */
export type TopicView =
  | { readonly errorType: string; readonly leaders: null }
  | { readonly errorType: null; readonly leaders: readonly number[] }

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
  /** Views of the topics, read again when older than 30 s, after `invalidate`, or when the last one was an error. */
  topicViews(topics: ReadonlySet<string>): Promise<ReadonlyMap<string, TopicView>>
  invalidate(): void
  connect(): Promise<void>
  /** One request to one broker, acknowledged by all in-sync replicas. Throws when no answer came: written or not is then unknown. */
  produce(nodeId: number, groups: readonly PartitionMessages[]): Promise<readonly PartitionAnswer[]>
  close(): Promise<void>
}

const viewMaxAgeMs = 30_000
const produceTimeoutMs = 30_000

export function createProduceGateway(connection: KafkaConnection, compression: CompressionName): ProduceGateway {
  const cluster = clusterOf(connection)
  const views = new Map<string, { readonly view: TopicView; readonly readAt: number }>()
  let refreshing: Promise<void> | null = null

  const isFresh = (topic: string): boolean => {
    const known = views.get(topic)
    return known !== undefined && known.view.errorType === null && performance.now() - known.readAt < viewMaxAgeMs
  }

  const refresh = async (topics: readonly string[]): Promise<void> => {
    const broker = await cluster.brokerPool.findConnectedBroker()
    const answer = await call<MetadataAnswer>(broker, 'Metadata', { topics, allowAutoTopicCreation: false })
    const readAt = performance.now()
    for (const { topic, topicErrorCode, partitionMetadata } of answer.topicMetadata) {
      views.set(topic, { view: viewOf(topicErrorCode, partitionMetadata), readAt })
    }
    await meetBrokers(cluster, broker, answer)
  }

  return {
    async topicViews(topics) {
      // One at a time. Its own caller reports its error; this one then tries for itself.
      for (let running = refreshing; running; running = refreshing) await running.catch(() => undefined)
      const wanted = [...topics].filter((topic) => !isFresh(topic))
      if (wanted.length > 0) {
        refreshing = refresh(wanted)
        try {
          await refreshing
        } finally {
          refreshing = null
        }
      }
      return new Map([...topics].flatMap((topic) => {
        const known = views.get(topic)
        return known ? [[topic, known.view] as const] : []
      }))
    },
    invalidate: () => views.clear(),
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

type Broker = {
  readonly connectionPool: { readonly host: string; readonly port: number; send(request: object): Promise<unknown> }
  lookupRequest(apiKey: number, versions: object): (fields: object) => { request: object; response: { decode: Decode }; requestTimeout?: number }
  disconnect(): Promise<void>
}
type Decode = (raw: Buffer) => Promise<unknown>
type Cluster = {
  targetTopics: Set<string>
  readonly brokerPool: {
    readonly brokers: Readonly<Record<string, Broker>>
    findConnectedBroker(): Promise<Broker>
    findBroker(node: { nodeId: string }): Promise<Broker>
  }
  connect(): Promise<void>
  refreshMetadata(): Promise<void>
  disconnect(): Promise<void>
}
type PartitionMetadata = { readonly partitionErrorCode: number; readonly partitionId: number; readonly leader: number }
type MetadataAnswer = {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[]
  readonly topicMetadata: readonly { topic: string; topicErrorCode: number; partitionMetadata: readonly PartitionMetadata[] }[]
}
type PartitionResponse = { partition: number; errorCode: number; baseOffset: string; logAppendTime: string }
type ProduceAnswer = { readonly topics: readonly { topicName: string; partitions: readonly PartitionResponse[] }[] }

const require = createRequire(import.meta.url)
const { requests } = require('kafkajs/src/protocol/requests') as { readonly requests: Readonly<Record<string, object>> }
const apiKeys = require('kafkajs/src/protocol/requests/apiKeys') as Readonly<Record<string, number>>
const { createErrorFromCode } = require('kafkajs/src/protocol/error') as {
  readonly createErrorFromCode: (code: number) => Error & { type: string; retriable: boolean }
}

/** The cluster behind a kafkajs client, which only its own producer, consumer and admin get; without any retry of its own. */
function clusterOf(connection: KafkaConnection): Cluster {
  const kafka = createKafka(connection, { retries: 0 })
  const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster')
  if (!symbol) throw new Error('kafkajs has no createCluster: install kafkajs 2.2.4 exactly, shared/kafka is written for it')
  const create = (kafka as unknown as Record<symbol, (options: object) => Cluster>)[symbol]!
  return create({ metadataMaxAge: viewMaxAgeMs, allowAutoTopicCreation: false })
}

const brokenConnections = new Set(['KafkaJSConnectionClosedError', 'KafkaJSRequestTimeoutError'])

/** Sends one request in the newest version both sides know and returns it decoded, errors within it included. */
async function call<Answer>(broker: Broker, api: 'Metadata' | 'Produce', fields: object): Promise<Answer> {
  const { request, response, ...rest } = broker.lookupRequest(apiKeys[api]!, requests[api]!)(fields)
  try {
    return await broker.connectionPool.send({ ...rest, request, response: { decode: response.decode, parse: async (data: unknown) => data } }) as Answer
  } catch (error) {
    // Closed, or silent for the request's whole time limit: the next try gets a new connection.
    if (error instanceof Error && brokenConnections.has(error.name)) await broker.disconnect()
    throw error
  }
}

/**
 * Lets kafkajs's pool learn of brokers that are new or have moved. It needs a topic that is well to ask about: where one partition of
 * those asked for has no leader, any other of the cluster, or nothing could be written to the partitions that have one.
 */
async function meetBrokers(cluster: Cluster, broker: Broker, answer: MetadataAnswer): Promise<void> {
  const isKnown = answer.brokers.every(({ nodeId, host, port }) => {
    const pool = cluster.brokerPool.brokers[nodeId]?.connectionPool
    return pool?.host === host && pool.port === port
  })
  if (isKnown) return
  const isWell = ({ topicErrorCode, partitionMetadata }: MetadataAnswer['topicMetadata'][number]): boolean =>
    topicErrorCode === 0 && partitionMetadata.every(({ partitionErrorCode }) => partitionErrorCode === 0)
  const well = answer.topicMetadata.find(isWell) ??
    (await call<MetadataAnswer>(broker, 'Metadata', { topics: [], allowAutoTopicCreation: false })).topicMetadata.find(isWell)
  if (!well) return
  cluster.targetTopics = new Set([well.topic])
  await cluster.refreshMetadata()
}

function viewOf(topicErrorCode: number, partitions: readonly PartitionMetadata[]): TopicView {
  if (topicErrorCode !== 0) return { errorType: createErrorFromCode(topicErrorCode).type, leaders: null }
  const leaders: number[] = []
  for (const { partitionId, leader } of partitions) leaders[partitionId] = leader
  return { errorType: null, leaders }
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
