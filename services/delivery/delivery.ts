import type { Policy } from '../../shared/domain/policy.ts'
import { createSettled } from '../../shared/domain/settled.ts'
import type { HttpClient } from '../../shared/http/client.ts'
import type { TopicPartition } from '../../shared/kafka/assignment.ts'
import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { KafkaConnection } from '../../shared/kafka/client.ts'
import { startConsumer, type Consumer } from '../../shared/kafka/consumer.ts'
import { partitionOf } from '../../shared/kafka/partitioner.ts'
import type { Producer } from '../../shared/kafka/producer.ts'
import { topicNames } from '../../shared/kafka/topics.ts'
import { createWriter } from '../../shared/kafka/writer.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/registry.ts'
import { openSubscriptionTable, type SubscriptionTable } from '../../shared/subscriptions/table.ts'
import { createEndpoints } from './endpoints.ts'
import { openHealthTopic, type HealthTopic } from './health-topic.ts'
import { createIntakeDesk } from './intake.ts'
import { createDeliveryMetrics, exportDeliveryGauges } from './metrics.ts'
import { createRequests } from './requests.ts'
import { createWorker } from './worker.ts'

export type DeliveryOptions = {
  readonly connection: KafkaConnection
  readonly producer: Producer
  readonly brokerTime: BrokerTime
  readonly http: HttpClient
  readonly metrics: Metrics
  readonly log: Log
  readonly topicPrefix: string
  readonly groupPrefix: string
  readonly tiersMs: readonly number[]
  readonly parkDelaysMs: readonly number[]
  readonly policyDefaults: Policy
  readonly expiryMs: number
  readonly windowBytes: number
  readonly maxInFlight: number
  readonly endpointCapStart: number
  readonly endpointCapMax: number
  readonly keepsExcerpt: boolean
  readonly sessionTimeoutMs?: number
  /** A consumer is dead for good: the process must end. */
  onFailed(error: Error): void
}

export type Delivery = {
  readonly groupId: string
  readonly consumer: Consumer
  readonly subscriptions: SubscriptionTable
  readonly health: HealthTopic
  /** Whatever keeps deliveries waiting that should not. One line each. */
  problems(): readonly string[]
  /** Starts nothing new, lets what is in flight finish for up to `deadlineMs`, writes health, commits, leaves the group. May be called again. */
  close(deadlineMs: number): Promise<void>
}

/** Partitions are held at this share of the window: what is in flight and being written still grows a little. */
const heldAtShare = 0.8
/** Before it joins again, a member waits this long for what is nearly through: that much is then not repeated by the next owner. */
const handOverDrainMs = 120
/** And this long for the brokers to take what is known of endpoints. */
const healthFlushMs = 2_000
/** Nobody's: a record without a value says nothing, but its acknowledgement tells the time. */
const clockKey = 'posthouse-clock'

/** Delivers what is in `deliveries`. Resolves once it is a member of the group. */
export async function startDelivery(options: DeliveryOptions): Promise<Delivery> {
  const { connection, producer, brokerTime, log, tiersMs } = options
  const topics = topicNames(options.topicPrefix)
  const groupId = `${options.groupPrefix}.delivery`
  const { onFailed } = options
  const [subscriptions, health] = await Promise.all([
    openSubscriptionTable({ connection, topic: topics.subscriptions, groupPrefix: `${groupId}.subscriptions`, onFailed }),
    openHealthTopic({ connection, topic: topics.endpointHealth, groupPrefix: `${groupId}.health`, log, onFailed }),
  ])
  const startedAt = performance.now()
  await Promise.all([subscriptions.waitFresh(startedAt), health.waitFresh(startedAt), learnClock()])

  /** Until the first acknowledgement this machine's clock is all there is: by a wrong one deliveries would expire, or be tried again too early. */
  async function learnClock(): Promise<void> {
    if (brokerTime.uncertaintyMs() !== null) return
    await producer.send({ topic: topics.endpointHealth, key: clockKey, value: null }).catch((error: unknown) => {
      log.warn('the brokers\' time could not be learnt; this machine\'s is used until they take a record', { error })
    })
  }

  const owned = new Set<number>()
  let partitionCount = 0
  const partitionOfKey = (key: string): number => partitionOf(Buffer.from(key), partitionCount)

  const writer = createWriter(producer, log.forKafka)
  const endpoints = createEndpoints({
    load: health.get,
    write: async (record) => { await producer.send(health.record(record)) },
    isOwner: (key) => partitionCount > 0 && owned.has(partitionOfKey(key)),
    // Whole: it goes into records.
    now: () => Math.ceil(brokerTime.nowForDue()),
    capStart: options.endpointCapStart,
    capMax: options.endpointCapMax,
    onWriteFailed: (endpoint, error) => log.warn('the health of an endpoint could not be written; it is tried again', { endpoint, error }),
  })
  const settled = createSettled()
  const desk = createIntakeDesk(settled)
  const worker = createWorker({
    settle: { topics, tiersMs },
    requests: createRequests({ http: options.http, policyDefaults: options.policyDefaults, keepsExcerpt: options.keepsExcerpt, log }),
    metrics: createDeliveryMetrics(options.metrics, tiersMs, options.expiryMs),
    writer, brokerTime, subscriptions, endpoints, desk, settled, log,
    expiryMs: options.expiryMs, windowBytes: options.windowBytes, maxInFlight: options.maxInFlight, parkDelaysMs: options.parkDelaysMs,
  })
  exportDeliveryGauges(options.metrics, { endpoints, inFlight: worker.inFlight, queued: worker.queued })

  const lose = (partitions: readonly TopicPartition[]): void => {
    worker.abandon(partitions)
    for (const { partition } of partitions) owned.delete(partition)
  }

  let isStopping = false
  const consumer = await startConsumer({
    connection, groupId, topics: [topics.deliveries], windowBytes: options.windowBytes * heldAtShare,
    ...(options.sessionTimeoutMs === undefined ? {} : { sessionTimeoutMs: options.sessionTimeoutMs }),
    handlers: {
      onRecord: worker.take,
      async beforeJoin() {
        await worker.drain(handOverDrainMs)
        await within(healthFlushMs, endpoints.flush())
      },
      async afterJoin({ gained, counts }) {
        partitionCount = counts.get(topics.deliveries) ?? partitionCount
        for (const { partition } of gained) owned.add(partition)
        // What was known of these before is of another owner's time; the previous owner has written its health before it let go.
        const changed = new Set(gained.map(({ partition }) => partition))
        endpoints.forget((key) => changed.has(partitionOfKey(key)) || !owned.has(partitionOfKey(key)))
        if (gained.length > 0) await health.waitFresh(performance.now())
        if (!isStopping) worker.resume()
      },
      onLost: lose,
      onFailed,
    },
  })

  let closing: Promise<void> | null = null
  return {
    groupId, consumer, subscriptions, health,
    problems: () => [
      ...writer.refusals().map((topic) => `topic ${topic} refuses records`),
      ...worker.newerPartitions().map((partition) => `${topics.deliveries} partition ${partition} has a record written by a newer posthouse`),
      ...(health.newerCount() > 0 ? [`${topics.endpointHealth} has records written by a newer posthouse`] : []),
      ...(subscriptions.newerCount() > 0 ? [`${topics.subscriptions} has records written by a newer posthouse`] : []),
    ],
    close: (deadlineMs) => (closing ??= (async () => {
      isStopping = true
      consumer.stopTaking()
      const isDrained = await worker.drain(deadlineMs)
      if (!isDrained) log.warn('stopped with attempts in flight; they are made again after the next start', { inFlight: worker.inFlight() })
      worker.close()
      await within(healthFlushMs, endpoints.flush())
      endpoints.close()
      await consumer.close()
      await Promise.all([subscriptions.close(), health.close()])
    })()),
  }
}

async function within(deadlineMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([work, new Promise<void>((resolve) => { timer = setTimeout(resolve, deadlineMs) })])
  clearTimeout(timer)
}
