import { createHttpClient } from '../../shared/http/client.ts'
import { sessionTimeoutMs, startKafkaService } from '../../shared/kafka-service/start.ts'
import { exportConsumerSeries, exportProducerSeries, exportTableSeries } from '../../shared/kafka-service/series.ts'
import { createTrimmer } from '../../shared/kafka/trim.ts'
import type { RunningService, ServiceContext } from '../../shared/lifecycle/run-service.ts'
import { startDelivery } from './delivery.ts'
import { maxTableAgeMs } from './worker.ts'

/** Delivers until it is closed. @throws as startKafkaService does */
export function run(context: ServiceContext): Promise<RunningService> {
  const { config, log, metrics } = context
  const { delivery: settings } = config
  return startKafkaService(context, {
    neededTopics: (topics) => [
      topics.deliveries, topics.subscriptions, topics.endpointHealth, topics.attempts, topics.dlq, topics.rejected, topics.soon, ...config.tiersMs.map(topics.tier),
    ],
    async start({ connection, admin, producer, brokerTime, topics, onFailed }) {
      const startedAt = Date.now()
      const http = createHttpClient({
        ca: config.safety.endpointCa,
        // The caps of endpoints bound what is in flight; endpoints of one host must not wait for each other's sockets.
        maxConnectionsPerOrigin: settings.maxInFlight,
      })
      const delivery = await startDelivery({
        connection, producer, brokerTime, http, metrics, log, onFailed, sessionTimeoutMs,
        topicPrefix: config.topics.prefix, groupPrefix: config.groupPrefix, tiersMs: config.tiersMs,
        parkDelaysMs: settings.parkDelaysMs, policyDefaults: config.policy, expiryMs: config.deliveryExpiryMs,
        windowBytes: settings.windowBytes, maxInFlight: settings.maxInFlight,
        endpointCapStart: settings.endpointCapStart, endpointCapMax: settings.endpointCapMax, keepsExcerpt: settings.keepsExcerpt,
      })
      const { consumer, subscriptions, health } = delivery
      exportProducerSeries(metrics, { producer, brokerTime })
      exportConsumerSeries(metrics, () => consumer, settings.windowBytes)
      exportTableSeries(metrics, { subscriptions: () => subscriptions, 'endpoint-health': () => health })
      const trimmer = createTrimmer({
        admin,
        targets: () => [{ topic: topics.deliveries, groupId: delivery.groupId, partitions: consumer.partitions().map(({ partition }) => partition) }],
        now: () => brokerTime.nowForWait(),
        log: log.forKafka,
        onTrimmed: () => undefined,
      })
      return {
        waitingFor: () => [
          ...(consumer.isJoined() ? [] : ['the consumer group is being joined']),
          ...(subscriptions.ageMs() < maxTableAgeMs * 3 ? [] : ['the subscriptions table is not fresh']),
          ...delivery.problems(),
        ],
        members: () => [
          { name: 'the consumer of deliveries', startedAt, lastHeartbeatAt: consumer.lastHeartbeatAt },
          { name: 'the reader of subscriptions', startedAt, lastHeartbeatAt: subscriptions.lastHeartbeatAt },
          { name: 'the reader of endpoint health', startedAt, lastHeartbeatAt: health.lastHeartbeatAt },
        ],
        async close() {
          await trimmer.close()
          await delivery.close(config.drainTimeoutMs)
          await http.destroy()
        },
      }
    },
  })
}
