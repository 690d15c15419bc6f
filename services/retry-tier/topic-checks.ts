import type { AdminClient } from '../../shared/kafka/client.ts'
import { checkTopics } from '../../shared/kafka/topic-check.ts'
import { readTopicStates } from '../../shared/kafka/topic-state.ts'
import { topicCatalogue, topicNames, type RetryTopic } from '../../shared/kafka/topics.ts'

/** What this service cannot start without: where it writes to, and every tier it may choose. One line for each thing that is wrong. */
export async function findStartFaults(admin: AdminClient, prefix: string, configuredDelaysMs: readonly number[]): Promise<readonly string[]> {
  const names = topicNames(prefix)
  const needed = [names.deliveries, names.rejected, names.soon, ...configuredDelaysMs.map(names.tier)]
  const problems = await checkTopics(admin, topicCatalogue({ prefix, tiersMs: configuredDelaysMs }), needed)
  return problems.map(({ problem }) => problem)
}

/**
 * Retry topics whose records would come up at the wrong time, with what is wrong. Nothing else is held against a topic that is there,
 * configured or not: what waits in it must come out.
 */
export async function findTimestampFaults(admin: AdminClient, topics: readonly RetryTopic[]): Promise<ReadonlyMap<string, string>> {
  const states = await readTopicStates(admin, topics.map(({ name }) => name))
  return new Map(topics.flatMap(({ name }): [string, string][] => {
    const type = states.get(name)?.config['message.timestamp.type']
    // Undefined: deleted since it was listed, which starting to serve it will find.
    if (type === undefined || type === 'LogAppendTime') return []
    return [[name, `topic ${name} has message.timestamp.type=${type}, but waits are measured by the broker's clock: set LogAppendTime on it`]]
  }))
}
