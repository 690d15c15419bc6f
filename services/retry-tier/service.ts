import { exportProducerSeries } from '../../shared/kafka-service/series.ts'
import { startKafkaService } from '../../shared/kafka-service/start.ts'
import type { RunningService, ServiceContext } from '../../shared/lifecycle/run-service.ts'
import { membersOf, waitingFor } from './health.ts'
import { createRetryTierMetrics } from './metrics.ts'
import { startRetryTier, type RetryTier } from './retry-tier.ts'
import { findTimestampFaults } from './topic-checks.ts'

/** Serves the retry topics until it is closed. @throws as startKafkaService does */
export function run(context: ServiceContext): Promise<RunningService> {
  const { config, log, metrics } = context
  return startKafkaService(context, {
    neededTopics: (topics) => [topics.deliveries, topics.rejected, topics.soon, ...config.tiersMs.map(topics.tier)],
    async start({ connection, admin, producer, brokerTime, onFailed }) {
      let retryTier: RetryTier | null = null
      const series = createRetryTierMetrics(metrics, () => retryTier?.tiers() ?? [])
      exportProducerSeries(metrics, { producer, brokerTime })
      const started = await startRetryTier({
        connection, admin, producer, brokerTime, log, metrics: series, onFailed,
        topicPrefix: config.topics.prefix, groupPrefix: config.groupPrefix,
        configuredDelaysMs: config.tiersMs, servedSuffixes: config.servedTiers,
        windowBytes: config.delivery.windowBytes,
        findFaults: (topics) => findTimestampFaults(admin, topics),
      })
      retryTier = started
      log.info('serving', { tiers: started.tiers().map(({ suffix }) => suffix) })
      return {
        waitingFor: () => waitingFor(started, Date.now()),
        members: () => membersOf(started),
        close: () => started.close(config.drainTimeoutMs),
      }
    },
  })
}
