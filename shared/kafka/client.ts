import type { ConnectionOptions } from 'node:tls'
import type { Admin, ISocketFactory, Kafka as KafkaClient, LogEntry, SASLOptions } from 'kafkajs'
import { hardenKafkajs } from './hardening.ts'
import { registerCodecs } from './compression.ts'
import { createTopicsPatiently } from './create-topics.ts'
import kafkajs from 'kafkajs'

const { Kafka, logLevel } = kafkajs

export type KafkaLogLevel = 'error' | 'warn' | 'info' | 'debug'
export type KafkaLog = (level: KafkaLogLevel, message: string, fields: object) => void

/** How to reach a cluster. */
export type KafkaConnection = {
  /** `host:port`, any of the cluster's. */
  readonly brokers: readonly string[]
  readonly clientId: string
  readonly ssl: ConnectionOptions | false
  readonly sasl: SASLOptions | null
  readonly log: KafkaLog
  /** Opens the sockets; for tests that put a proxy between. */
  readonly socketFactory?: ISocketFactory
}

/**
 * Retries of anything that reaches the brokers: about 80 minutes, at most 5 s apart. kafkajs's own default gives up after seconds, and
 * its consumer then crashes; with this a client is back 16 to 18 s after its brokers are.
 */
export const kafkaRetry = { initialRetryTime: 200, maxRetryTime: 5_000, retries: 1_000 } as const

/** A hardened kafkajs client with every codec. Connects to nothing yet. `retries`: how often it tries again, instead of for an hour. */
export function createKafka(connection: KafkaConnection, options: { readonly retries?: number } = {}): KafkaClient {
  hardenKafkajs()
  registerCodecs()
  const kafka = new Kafka({
    brokers: [...connection.brokers],
    clientId: connection.clientId,
    ssl: connection.ssl,
    ...(connection.sasl ? { sasl: connection.sasl } : {}),
    ...(connection.socketFactory ? { socketFactory: connection.socketFactory } : {}),
    connectionTimeout: 5_000,
    authenticationTimeout: 10_000,
    requestTimeout: 30_000,
    retry: { ...kafkaRetry, ...options },
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => forwardLog(connection.log, entry),
  })
  const makeConsumer = kafka.consumer.bind(kafka)
  // kafkajs's default makes a topic that was deleted again as soon as one asks for it, with one partition and the brokers' timestamps.
  kafka.consumer = (config) => makeConsumer({ allowAutoTopicCreation: false, ...config })
  const makeAdmin = kafka.admin.bind(kafka)
  kafka.admin = (config) => createTopicsPatiently(makeAdmin(config))
  return kafka
}

/** kafkajs's admin client, connected. */
export type AdminClient = Admin & { close(): Promise<void> }

/** A connected admin client; `close()` may be called more than once. With `retries` it gives up sooner than a service would. */
export async function createAdmin(connection: KafkaConnection, options: { readonly retries?: number } = {}): Promise<AdminClient> {
  const admin = createKafka(connection, options).admin()
  await admin.connect()
  let closing: Promise<void> | null = null
  return Object.assign(admin, { close: () => (closing ??= admin.disconnect()) })
}

/** Namespaces whose errors kafkajs retries itself and reports again, one level up, when it gives up. */
const retriedInside = new Set(['Connection', 'ConnectionPool', 'BrokerPool', 'Cluster', 'Producer'])
/** At the longest pause of 5 s, one line in 12 is one a minute. */
const retriesPerWarning = 12

/** kafkajs calls each failed retry an error: the first of a series and one a minute are warnings here, the rest is debug. */
export function levelOf(entry: LogEntry): KafkaLogLevel {
  if (entry.level >= logLevel.INFO) return 'debug'
  if (entry.level === logLevel.WARN) return 'warn'
  const retryCount = typeof entry.log['retryCount'] === 'number' ? entry.log['retryCount'] : null
  if (retryCount !== null) return retryCount % retriesPerWarning === 0 ? 'warn' : 'debug'
  return retriedInside.has(entry.namespace) ? 'debug' : 'error'
}

function forwardLog(log: KafkaLog, entry: LogEntry): void {
  const { message, timestamp: _, logger: __, ...fields } = entry.log
  log(levelOf(entry), `kafkajs: ${message}`, { ...fields, namespace: entry.namespace })
}

type Caused = { readonly name?: unknown; readonly cause?: unknown; readonly retriable?: unknown; readonly code?: unknown }

/** Errors of kafkajs (by name: their classes lie about being retriable) and of sockets (by code) that pass when the brokers are back. */
const passingNames = new Set([
  'KafkaJSConnectionError', 'KafkaJSConnectionClosedError', 'KafkaJSRequestTimeoutError', 'KafkaJSBrokerNotFound',
  'KafkaJSNoBrokerAvailableError', 'KafkaJSMetadataNotLoaded', 'KafkaJSTopicMetadataNotLoaded', 'KafkaJSLockTimeout',
  'KafkaJSGroupCoordinatorNotFound', 'KafkaJSStaleTopicMetadataAssignment', 'KafkaJSTimeout',
])
const passingCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])

/**
 * Whether trying again can help. Decided by the innermost cause: an outage arrives as a KafkaJSNonRetriableError around a
 * KafkaJSConnectionError. What is not an error of Kafka's is not retriable.
 */
export function isRetriableKafkaError(error: unknown): boolean {
  const chain = causesOf(error)
  if (chain.some(({ name, code }) => passingNames.has(String(name)) || passingCodes.has(String(code)))) return true
  return chain.at(-1)?.retriable === true
}

/** Whether an error comes from Kafka, kafkajs or a socket at all, rather than from a bug of ours. */
export function isKafkaTrouble(error: unknown): boolean {
  const innermost = causesOf(error).at(-1)
  return isRetriableKafkaError(error) || String(innermost?.name).startsWith('KafkaJS')
}

/** The protocol's name of an error (`UNKNOWN_TOPIC_OR_PARTITION`), looked for along the causes; null where there is none. */
export function kafkaErrorType(error: unknown): string | null {
  for (const caused of causesOf(error)) if ('type' in caused && typeof caused.type === 'string') return caused.type
  return null
}

/** The error and its causes, outermost first; bounded, as a cause may be its own. */
function causesOf(error: unknown): readonly Caused[] {
  const chain: Caused[] = []
  for (let at: unknown = error; typeof at === 'object' && at !== null && chain.length < 10; at = (at as Caused).cause) {
    if (chain.includes(at)) break
    chain.push(at)
  }
  return chain
}
