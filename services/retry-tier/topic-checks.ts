import type { AdminClient } from '../../shared/kafka/client.ts'
import { readTopicStates } from '../../shared/kafka/topic-state.ts'
import type { RetryTopic } from '../../shared/kafka/topics.ts'

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
