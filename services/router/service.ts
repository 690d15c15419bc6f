import type { Config } from '../../shared/config/config.ts'
import { exportConsumerSeries, exportProducerSeries, exportTableSeries } from '../../shared/kafka-service/series.ts'
import { sessionTimeoutMs, startKafkaService } from '../../shared/kafka-service/start.ts'
import type { StartPosition } from '../../shared/kafka/start-position.ts'
import { topicCatalogue, topicNames } from '../../shared/kafka/topics.ts'
import type { RunningService, ServiceContext } from '../../shared/lifecycle/run-service.ts'
import { createRouterMetrics } from './metrics.ts'
import { maxTableAgeMs } from './route.ts'
import { startRouter } from './router.ts'

/**
 * Memory for events read ahead: they stay only until their deliveries are acknowledged, and what is being written has the producer's
 * own bound.
 */
const windowBytes = 32 * 1024 * 1024

/** Routes events until it is closed. @throws as startKafkaService does, and when it is to read what posthouse itself writes */
export async function run(context: ServiceContext): Promise<RunningService> {
  const { config, log, metrics } = context
  refuseOwnTopics(config)
  return startKafkaService(context, {
    neededTopics: (topics) => [...config.events.topics, topics.subscriptions, topics.deliveries, topics.rejected],
    async start({ connection, producer, brokerTime, onFailed }) {
      const startedAt = Date.now()
      const router = await startRouter({
        connection, producer, brokerTime, log, onFailed, sessionTimeoutMs, windowBytes,
        metrics: createRouterMetrics(metrics),
        topicPrefix: config.topics.prefix, groupPrefix: config.groupPrefix,
        eventsTopics: config.events.topics, startPosition: startPositionOf(config), door: config.events,
      })
      const { consumer, subscriptions } = router
      exportProducerSeries(metrics, { producer, brokerTime })
      exportConsumerSeries(metrics, () => consumer, windowBytes)
      exportTableSeries(metrics, { subscriptions: () => subscriptions })
      return {
        waitingFor: () => [
          ...(consumer.isJoined() ? [] : ['the consumer group is being joined']),
          ...(subscriptions.ageMs() < maxTableAgeMs * 3 ? [] : ['the subscriptions table is not fresh']),
          ...router.problems(),
        ],
        members: () => [
          { name: 'the consumer of events', startedAt, lastHeartbeatAt: consumer.lastHeartbeatAt },
          { name: 'the reader of subscriptions', startedAt, lastHeartbeatAt: subscriptions.lastHeartbeatAt },
        ],
        close: () => router.close(config.drainTimeoutMs),
      }
    },
  })
}

function refuseOwnTopics({ events, topics: { prefix }, tiersMs }: Config): void {
  const retry = topicNames(prefix).retry('')
  const own = new Set(topicCatalogue({ prefix, tiersMs }).map(({ name }) => name))
  for (const topic of events.topics) {
    if (!own.has(topic) && !topic.startsWith(retry)) continue
    throw new Error(`${topic} in POSTHOUSE_EVENTS_TOPICS is a topic posthouse itself writes to: take it out, or events would be made of deliveries`)
  }
}

function startPositionOf({ events: { start } }: Config): StartPosition {
  return start.kind === 'time' ? { at: start.atMs } : start.kind
}
