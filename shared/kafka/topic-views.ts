import { call, createErrorFromCode, metadataMaxAgeMs, type Broker, type Cluster } from './cluster.ts'

/** A topic as the brokers describe it: an error by its protocol name, or the leader (node id, -1 for none) of each partition. */
export type TopicView =
  | { readonly errorType: string; readonly leaders: null }
  | { readonly errorType: null; readonly leaders: readonly number[] }

/** Who leads what; kafkajs's own metadata fails for all topics when one of them is gone or has no leader. Nothing is retried here. */
export type TopicViews = {
  /** Views of the topics, read again when older than 30 s, after `invalidate`, or when the last one was an error. */
  read(topics: ReadonlySet<string>): Promise<ReadonlyMap<string, TopicView>>
  invalidate(): void
}

type PartitionMetadata = { readonly partitionErrorCode: number; readonly partitionId: number; readonly leader: number }
type MetadataAnswer = {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[]
  readonly topicMetadata: readonly { topic: string; topicErrorCode: number; partitionMetadata: readonly PartitionMetadata[] }[]
}

export function createTopicViews(cluster: Cluster): TopicViews {
  const views = new Map<string, { readonly view: TopicView; readonly readAt: number }>()
  let refreshing: Promise<void> | null = null

  const isFresh = (topic: string): boolean => {
    const known = views.get(topic)
    return known !== undefined && known.view.errorType === null && performance.now() - known.readAt < metadataMaxAgeMs
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
    async read(topics) {
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
