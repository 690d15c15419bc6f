import { setTimeout as delay } from 'node:timers/promises'
import { toKafkaConnection } from '../../shared/config/kafka-connection.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createAdmin, isRetriableKafkaError } from '../../shared/kafka/client.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { createClosers } from '../../shared/lifecycle/closers.ts'
import type { RunningService, ServiceContext } from '../../shared/lifecycle/run-service.ts'
import { createServiceServer } from '../../shared/service-server/service-server.ts'
import { reasonToRestart, waitingFor } from './health.ts'
import { createRetryTierMetrics } from './metrics.ts'
import { startRetryTier, type RetryTier } from './retry-tier.ts'
import { findStartFaults, findTimestampFaults } from './topic-checks.ts'

/** Tries of one request to the brokers before it counts as failed: they are asked again anyway, and whether they answer is to be known soon. */
const adminRetries = 5
const pauseMs = 2_000

/**
 * Serves the retry topics until it is closed. Kafka that is away is waited for, not ready.
 * @throws when a topic is missing or not as it must be, saying which and what to do; when the port cannot be opened; when `signal` aborts
 */
export async function run({ config, log, metrics, signal }: ServiceContext): Promise<RunningService> {
  const closers = createClosers()
  const { promise: failed, resolve: onFailed } = Promise.withResolvers<Error>()
  let retryTier: RetryTier | null = null
  let isClosing = false

  async function start(): Promise<void> {
    const server = await createServiceServer({
      ...config.http,
      registry: metrics.registry,
      readiness: () => (isClosing ? ['stopping'] : waitingFor(retryTier, Date.now())),
      liveness: () => reasonToRestart(retryTier, retryTier?.answering() ?? null),
    })
    closers.add('the HTTP server', () => server.close())
    log.info('listening', { port: server.port })

    const connection = toKafkaConnection(config.kafka, log.forKafka)
    const admin = await patiently(() => createAdmin(connection, { retries: adminRetries }))
    closers.add('the admin client', () => admin.close())
    const faults = await patiently(() => findStartFaults(admin, config.topics.prefix, config.tiersMs))
    if (faults.length > 0) throw new Error(`topics are not as retry-tier needs them: ${faults.join('; ')}`)

    const brokerTime = createBrokerTime()
    const producer = await createProducer({ connection, brokerTime })
    closers.add('the producer', () => producer.close())
    const series = createRetryTierMetrics(metrics, { tiers: () => retryTier?.tiers() ?? [], producer, brokerTime })
    retryTier = await startRetryTier({
      connection, admin, producer, brokerTime, log, metrics: series, onFailed,
      topicPrefix: config.topics.prefix, groupPrefix: config.groupPrefix,
      configuredDelaysMs: config.tiersMs, servedSuffixes: config.servedTiers,
      windowBytes: config.delivery.windowBytes,
      findFaults: (topics) => findTimestampFaults(admin, topics),
    })
    closers.add('the tiers', () => retryTier?.close(config.drainTimeoutMs))
    log.info('serving', { tiers: retryTier.tiers().map(({ suffix }) => suffix) })
  }

  /** Until Kafka answers, or says something that waiting will not mend. */
  async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if (!isRetriableKafkaError(error)) throw error
        log.warn('Kafka does not answer: asked again', { brokers: config.kafka.brokers, pauseMs, error })
        await delay(pauseMs, undefined, { signal })
      }
    }
  }

  const close = (): Promise<void> => {
    isClosing = true
    return closers.close()
  }
  try {
    await Promise.race([start(), aborted(signal)])
  } catch (error) {
    await close()
    throw error
  }
  return { failed, close }
}

/** Rejects when a stop is asked for: a client that waits for its brokers cannot be called off otherwise. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const giveUp = (): void => reject(new Error('stopped before the start was completed'))
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
  })
}
