import kafkajs, { type Admin } from 'kafkajs'

const { ConfigResourceTypes, ConfigSource } = kafkajs

/** A topic as it is on the cluster. */
export type TopicState = {
  readonly partitions: number
  /** Every value that holds for the topic, the brokers' defaults included. */
  readonly config: Readonly<Record<string, string>>
  /** Those of them that are set on the topic itself. */
  readonly ownConfig: Readonly<Record<string, string>>
}

/** Those of the topics that exist, by name. */
export async function readTopicStates(admin: Admin, names: readonly string[]): Promise<ReadonlyMap<string, TopicState>> {
  const present = new Set(await admin.listTopics())
  const wanted = names.filter((name) => present.has(name))
  if (wanted.length === 0) return new Map()
  const [{ topics }, { resources }] = await Promise.all([
    admin.fetchTopicMetadata({ topics: wanted }),
    admin.describeConfigs({
      includeSynonyms: false, resources: wanted.map((name) => ({ type: ConfigResourceTypes.TOPIC, name })),
    }),
  ])
  const partitionsOf = new Map(topics.map(({ name, partitions }) => [name, partitions.length]))
  return new Map(resources.map(({ resourceName, configEntries }) => {
    const readable = configEntries.filter(({ isSensitive }) => !isSensitive)
    return [resourceName, {
      partitions: partitionsOf.get(resourceName) ?? 0,
      config: Object.fromEntries(readable.map(({ configName, configValue }) => [configName, configValue])),
      ownConfig: Object.fromEntries(readable.filter(({ configSource }) => configSource === ConfigSource.TOPIC_CONFIG)
        .map(({ configName, configValue }) => [configName, configValue])),
    }]
  }))
}
