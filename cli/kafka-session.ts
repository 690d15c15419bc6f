import { toKafkaConnection } from '../shared/config/kafka-connection.ts'
import type { Config } from '../shared/config/config.ts'
import { createBrokerTime, type BrokerTime } from '../shared/kafka/broker-time.ts'
import { createAdmin, type AdminClient, type KafkaConnection } from '../shared/kafka/client.ts'
import { createProducer, type Producer } from '../shared/kafka/producer.ts'
import { topicCatalogue, topicNames, type TopicNames, type TopicSpec } from '../shared/kafka/topics.ts'
import { createClosers } from '../shared/lifecycle/closers.ts'
import { CliError, toCliError, unreachable } from './cli-error.ts'
import type { Context } from './context.ts'
import { announcement, effectiveEnvironment, readSettings } from './settings.ts'

/** A cluster that was reached. What a command opens is closed after it, in the reverse order. */
export type KafkaSession = {
  readonly config: Config
  readonly connection: KafkaConnection
  readonly admin: AdminClient
  readonly names: TopicNames
  readonly catalogue: readonly TopicSpec[]
  /** Any of the commands' own readers: a group of that prefix and a random part. */
  readonly groupPrefix: string
  producer(): Promise<{ readonly producer: Producer; readonly brokerTime: BrokerTime }>
  /** Closes it, after whatever was opened later. */
  add(name: string, close: () => Promise<void> | void): void
}

/** Kafka has this long to answer at all, ms: a command must not wait for an outage to pass, as services do. */
const reachDeadlineMs = 10_000
const closeDeadlineMs = 5_000
/** About 3 s of trying again where brokers refuse at once. */
const retries = 4

/**
 * Reads the configuration, reaches Kafka, does `work` and closes everything.
 * @throws CliError `configuration`; `unreachable` when no broker answers within 10 s, or is lost meanwhile
 */
export async function withKafka<Value>(context: Context, work: (kafka: KafkaSession) => Promise<Value>): Promise<Value> {
  const effective = effectiveEnvironment()
  if (effective.local) context.output.warn(announcement(effective.local))
  const { config } = readSettings(effective)
  const { brokers } = config.kafka
  const connection = toKafkaConnection(config.kafka, logTo(context))
  const closers = createClosers()
  try {
    const admin = await context.wait(`waiting for Kafka at ${brokers.join(', ')}`, createAdmin(connection, { retries }), {
      deadlineMs: reachDeadlineMs, onTimeout: () => unreachable(brokers),
    })
    closers.add('the admin client', admin.close)
    return await work(sessionOf(config, connection, admin, closers.add))
  } catch (error) {
    throw toCliError(error, brokers)
  } finally {
    await closeInTime(context, closers.close())
  }
}

function sessionOf(config: Config, connection: KafkaConnection, admin: AdminClient, add: KafkaSession['add']): KafkaSession {
  return {
    config, connection, admin, add,
    names: topicNames(config.topics.prefix),
    catalogue: catalogueOf(config),
    groupPrefix: `${config.groupPrefix}.cli`,
    async producer() {
      const brokerTime = createBrokerTime()
      const producer = await createProducer({ connection, brokerTime })
      add('the producer', () => producer.close(closeDeadlineMs))
      return { producer, brokerTime }
    },
  }
}

/** Every topic of ours as the configuration has it. */
export function catalogueOf({ topics, tiersMs }: Config): readonly TopicSpec[] {
  const { prefix, partitions, tierPartitions, replicationFactor } = topics
  const replication = replicationFactor === null ? {} : { replication: replicationFactor }
  return topicCatalogue({ prefix, partitions, tierPartitions, tiersMs, ...replication })
}

function logTo({ isVerbose }: Context): KafkaConnection['log'] {
  if (!isVerbose) return () => {}
  return (level, message, fields) => process.stderr.write(`${level}: ${message} ${JSON.stringify(fields)}\n`)
}

/** A reader whose broker is gone could take an hour to leave its group: it is left behind then, and forgotten by the broker in time. */
async function closeInTime({ isVerbose }: Context, closing: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, closeDeadlineMs) })
  try {
    await Promise.race([closing, late])
  } catch (error) {
    if (isVerbose) process.stderr.write(`closing: ${String(error)}\n`)
  } finally {
    clearTimeout(timer)
  }
}

/** The topics a command needs. @throws CliError `not_found` with what to do */
export async function requireTopics(
  { admin }: KafkaSession, needed: readonly string[], hint = 'run "posthouse topics provision --yes"',
): Promise<void> {
  const present = new Set(await admin.listTopics())
  const missing = needed.filter((name) => !present.has(name))
  if (missing.length === 0) return
  throw new CliError(
    'not_found', missing.length === 1 ? `topic ${missing[0]} does not exist` : `topics ${missing.join(', ')} do not exist`,
    hint,
  )
}

/** What to do about a missing events topic, which is the user's own. */
export const eventsTopicHint = 'create it, correct POSTHOUSE_EVENTS_TOPICS, or run "posthouse topics provision --with-events --yes"'
