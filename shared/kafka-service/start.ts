import { setTimeout as delay } from 'node:timers/promises'
import { toKafkaConnection } from '../config/kafka-connection.ts'
import { createBrokerTime, type BrokerTime } from '../kafka/broker-time.ts'
import { createAdmin, isRetriableKafkaError, type AdminClient, type KafkaConnection } from '../kafka/client.ts'
import { createProducer, type Producer } from '../kafka/producer.ts'
import { checkTopics } from '../kafka/topic-check.ts'
import { topicCatalogue, topicNames, type TopicNames } from '../kafka/topics.ts'
import { createClosers } from '../lifecycle/closers.ts'
import type { RunningService, ServiceContext } from '../lifecycle/run-service.ts'
import { createServiceServer, type RequestHandler } from '../service-server/service-server.ts'
import { reasonToRestart, watchAnswering, type AnsweringWatch, type Member } from './answering.ts'

/** What every service has of Kafka. */
export type KafkaParts = {
  readonly connection: KafkaConnection
  /** Gives up after a few tries, so that a broker that is away is noticed. */
  readonly admin: AdminClient
  readonly producer: Producer
  readonly brokerTime: BrokerTime
  readonly topics: TopicNames
  /** Tells the process that it can do nothing more by itself. */
  onFailed(error: Error): void
}

/** A service's own part, once it runs. */
export type RunningPart = {
  /** What is missing before it does its work, each in a few words; empty when nothing is. */
  waitingFor(): readonly string[]
  members(): readonly Member[]
  close(): Promise<void>
}

/** Tries of one request to the brokers before it counts as failed. */
const adminRetries = 5
const pauseMs = 2_000
export const sessionTimeoutMs = 10_000

/**
 * Runs a service that lives on Kafka: opens its port, waits for the brokers, checks its topics, starts its own part, and closes all of it in
 * reverse order. A Kafka that is away is waited for, not ready.
 * @throws when a topic is missing or not as it must be, saying which and what to do; when the port cannot be opened; when the signal aborts
 */
export async function startKafkaService({ config, log, metrics, signal }: ServiceContext, options: {
  /** Full names of topics that must be there and sound. */
  readonly neededTopics: (topics: TopicNames) => readonly string[]
  readonly start: (parts: KafkaParts) => Promise<RunningPart>
  /** Answers what else is asked at the port, from its opening on: also while Kafka is waited for. */
  readonly handle?: RequestHandler
}): Promise<RunningService> {
  const closers = createClosers()
  const { promise: failed, resolve: onFailed } = Promise.withResolvers<Error>()
  let part: RunningPart | null = null
  let answering: AnsweringWatch | null = null
  let isClosing = false

  async function start(): Promise<void> {
    const server = await createServiceServer({
      ...config.http,
      registry: metrics.registry,
      readiness: () => (isClosing ? ['stopping'] : part?.waitingFor() ?? ['Kafka has not answered yet']),
      liveness: () => reasonToRestart(part?.members() ?? [], answering?.now() ?? null, sessionTimeoutMs),
      ...(options.handle === undefined ? {} : { handle: options.handle }),
    })
    closers.add('the HTTP server', () => server.close())
    log.info('listening', { port: server.port })

    const connection = toKafkaConnection(config.kafka, log.forKafka)
    const admin = await patiently(() => createAdmin(connection, { retries: adminRetries }))
    closers.add('the admin client', () => admin.close())
    answering = watchAnswering(admin)
    closers.add('the watch over the brokers', answering.close)
    const topics = topicNames(config.topics.prefix)
    const catalogue = topicCatalogue({ prefix: config.topics.prefix, tiersMs: config.tiersMs })
    const problems = await patiently(() => checkTopics(admin, catalogue, options.neededTopics(topics)))
    if (problems.length > 0) throw new Error(`topics are not as they must be: ${problems.map(({ problem }) => problem).join('; ')}`)

    const brokerTime = createBrokerTime()
    const producer = await createProducer({ connection, brokerTime })
    closers.add('the producer', () => producer.close())
    const started = await options.start({ connection, admin, producer, brokerTime, topics, onFailed })
    part = started
    closers.add('the service', () => started.close())
    log.info('started')
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
