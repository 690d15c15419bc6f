import type { BrokerTime } from '../../shared/kafka/broker-time.ts'
import type { KafkaConnection } from '../../shared/kafka/client.ts'
import { startConsumer, type Consumer } from '../../shared/kafka/consumer.ts'
import type { Producer } from '../../shared/kafka/producer.ts'
import type { StartPosition } from '../../shared/kafka/start-position.ts'
import { topicNames } from '../../shared/kafka/topics.ts'
import { createWriter } from '../../shared/kafka/writer.ts'
import type { Log } from '../../shared/log/log.ts'
import type { DoorOptions } from '../../shared/records/event-door.ts'
import { openSubscriptionTable, type SubscriptionTable } from '../../shared/subscriptions/table.ts'
import type { RouterMetrics } from './metrics.ts'
import { createRouting } from './route.ts'

export type RouterOptions = {
  readonly connection: KafkaConnection
  readonly producer: Producer
  readonly brokerTime: BrokerTime
  readonly metrics: RouterMetrics
  readonly log: Log
  readonly topicPrefix: string
  readonly groupPrefix: string
  /** Topics events are read from, full names. */
  readonly eventsTopics: readonly string[]
  /** Where a topic is read from at its very first start. */
  readonly startPosition: StartPosition
  readonly door: DoorOptions
  /** Memory for events that were read and are not done. */
  readonly windowBytes: number
  readonly sessionTimeoutMs?: number
  /** A consumer is dead for good: the process must end. */
  onFailed(error: Error): void
}

export type Router = {
  readonly consumer: Consumer
  readonly subscriptions: SubscriptionTable
  /** Whatever keeps events waiting that should not. One line each. */
  problems(): readonly string[]
  /** Begins no event, lets what was begun be acknowledged for up to `deadlineMs`, commits, leaves the group. May be called again. */
  close(deadlineMs: number): Promise<void>
}

/** A hand-over waits this long for acknowledgements; what is not there by then is repeated by the new owner. */
const handOverMs = 120

/** Routes what is in the events topics. Resolves once it is a member of the group, with the subscriptions read to their end. */
export async function startRouter(options: RouterOptions): Promise<Router> {
  const { connection, producer, brokerTime, metrics, log, onFailed } = options
  const topics = topicNames(options.topicPrefix)
  const groupId = `${options.groupPrefix}.router`
  const subscriptions = await openSubscriptionTable({
    connection, topic: topics.subscriptions, groupPrefix: `${groupId}.subscriptions`, onFailed,
  })
  await subscriptions.waitFresh(performance.now())

  const writer = createWriter(producer, log.forKafka)
  const routing = createRouting({ topics, door: options.door, subscriptions, writer, brokerTime, metrics, log })
  let isStopping = false
  const consumer = await startConsumer({
    connection, groupId, topics: options.eventsTopics, startPosition: options.startPosition,
    windowBytes: options.windowBytes,
    ...(options.sessionTimeoutMs === undefined ? {} : { sessionTimeoutMs: options.sessionTimeoutMs }),
    handlers: {
      onRecord: routing.take,
      async beforeJoin() {
        await routing.drain(handOverMs)
      },
      async afterJoin() {
        if (!isStopping) routing.resume()
      },
      onLost: routing.dropLost,
      onFailed,
    },
  })

  let closing: Promise<void> | null = null
  return {
    consumer, subscriptions,
    problems: () => [
      ...writer.refusals().map((topic) => `topic ${topic} refuses records`),
      ...(subscriptions.newerCount() > 0 ? [`${topics.subscriptions} has records written by a newer posthouse: no event is routed`] : []),
      ...(routing.waiting() > 0 ? [`${routing.waiting()} events cannot be read for now`] : []),
    ],
    close: (deadlineMs) => (closing ??= (async () => {
      isStopping = true
      consumer.stopTaking()
      const isDrained = await routing.drain(deadlineMs)
      if (!isDrained) log.warn('stopped with events not wholly routed; they are routed again after the next start', { events: routing.inFlight() })
      await consumer.close()
      await subscriptions.close()
    })()),
  }
}
