import { setTimeout as delay } from 'node:timers/promises'
import type { Admin } from 'kafkajs'

const pollMs = 100
const defaultTimeoutMs = 10_000

/**
 * An admin client whose `createTopics` waits for leaders by itself. kafkajs asks once too early and gives up: a broker that has not
 * heard of the new topic yet answers UNKNOWN_TOPIC_OR_PARTITION, which it takes for a failure of the creation.
 */
export function createTopicsPatiently(admin: Admin): Admin {
  const createTopics = admin.createTopics.bind(admin)
  return Object.assign(admin, {
    async createTopics(options: Parameters<Admin['createTopics']>[0]): Promise<boolean> {
      const isMade = await createTopics({ ...options, waitForLeaders: false })
      if (isMade && options.waitForLeaders !== false) await waitForLeaders(admin, options.topics.map(({ topic }) => topic), options.timeout ?? defaultTimeoutMs)
      return isMade
    },
  })
}

async function waitForLeaders(admin: Admin, topics: string[], timeoutMs: number): Promise<void> {
  for (const endsAt = performance.now() + timeoutMs; ;) {
    try {
      const metadata = await admin.fetchTopicMetadata({ topics })
      if (metadata.topics.every(({ partitions }) => partitions.length > 0 && partitions.every(({ leader }) => leader >= 0))) return
    } catch (error) {
      // Not known to the broker that was asked: the same as having no leader yet, until the time is up.
      if (performance.now() > endsAt) throw error
    }
    if (performance.now() > endsAt) throw new Error(`topics ${topics.join(', ')} were created, but have no leaders after ${timeoutMs} ms`)
    await delay(pollMs)
  }
}
