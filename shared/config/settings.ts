import type { z } from 'zod'
import { maxTotalMs, policyBounds } from '../domain/policy-check.ts'
import { jitterKinds } from '../domain/policy.ts'
import { allowedNetwork } from './networks.ts'
import {
  anyText, byteSize, duration, eventsStart, hostAndPort, listOf, oneOf, textMatching, tierName, topicName, wholeNumber, yesOrNo,
  type Schema,
} from './parsers.ts'

export const serviceNames = ['router', 'delivery', 'retry-tier', 'admin'] as const
export type ServiceName = (typeof serviceNames)[number]

/** One environment variable: the configuration, its checks, the README's table and `config print` all come from this. */
export type Setting<Value> = {
  readonly name: string
  /** From the text of the variable, undefined where it is unset, to its value. */
  readonly schema: z.ZodType<Value, string | null | undefined>
  /** As it would be written in the environment, and read by the same schema; null: there is none, and `whenUnset` says what happens. */
  readonly defaultText: string | null
  readonly whenUnset: string | null
  readonly doc: string
  /** Never printed, logged or quoted in an error. */
  readonly isSecret: boolean
  /** `all`: the four services and the commands that reach Kafka. */
  readonly usedBy: readonly ServiceName[] | 'all'
}

type About = { doc: string; usedBy?: Setting<unknown>['usedBy']; isSecret?: boolean }

const setting = <Value>(name: string, schema: Schema<Value>, defaultText: string, { doc, usedBy = 'all', isSecret = false }: About): Setting<Value> =>
  ({ name, schema: schema.prefault(defaultText), defaultText, whenUnset: null, doc, isSecret, usedBy })

const optional = <Value>(
  name: string, schema: Schema<Value>, whenUnset: string, { doc, usedBy = 'all', isSecret = false }: About,
): Setting<Value | null> => ({ name, schema: schema.nullable().prefault(null), defaultText: null, whenUnset, doc, isSecret, usedBy })

const secondMs = 1000
const hourMs = 3_600_000
const dayMs = 24 * hourMs

const anyDelay = duration({ fromMs: policyBounds.waitMs.min, toMs: policyBounds.waitMs.max })
const fieldName = textMatching(/^[^\s.][^\s]{0,127}$/, 'the name of a field of the event, without spaces')
const eventType = textMatching(/^(?!posthouse\.)[\x21-\x7e]{1,256}$/, 'an event type: printable ASCII without spaces, at most 256, not beginning with "posthouse."')

/** Long enough not to be guessed; what a header can carry, without the comma that separates them. */
export const adminToken = textMatching(/^[\x21-\x2b\x2d-\x7e]{16,256}$/, 'a token of 16 to 256 printable ASCII characters without spaces and commas')

/** Every setting, by the key under which config.ts finds its value. Order is the order of the documentation. */
export const settings = {
  // Kafka
  brokers: optional('KAFKA_BROKERS', listOf(hostAndPort), 'must be set', { doc: 'Brokers to begin with, as host:port' }),
  clientId: setting('KAFKA_CLIENT_ID', textMatching(/^[\w.-]{1,100}$/, 'letters, digits, ".", "_", "-", at most 100'), 'posthouse',
    { doc: 'Client name shown in the brokers\' logs and quotas' }),
  securityProtocol: setting('KAFKA_SECURITY_PROTOCOL', oneOf('PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'), 'PLAINTEXT',
    { doc: 'How brokers are reached' }),
  saslMechanism: optional('KAFKA_SASL_MECHANISM', oneOf('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'), 'needed with SASL',
    { doc: 'SASL mechanism; GSSAPI and OAUTHBEARER are not supported' }),
  saslUsername: optional('KAFKA_SASL_USERNAME', anyText, 'needed with SASL', { doc: 'SASL user name' }),
  saslPassword: optional('KAFKA_SASL_PASSWORD', anyText, 'needed with SASL', { doc: 'SASL password', isSecret: true }),
  tlsCaFile: optional('KAFKA_TLS_CA_FILE', anyText, 'the certificate authorities Node.js carries',
    { doc: 'PEM file of the authorities that sign the brokers\' certificates' }),
  tlsCertFile: optional('KAFKA_TLS_CERT_FILE', anyText, 'no client certificate', { doc: 'PEM file of the client certificate' }),
  tlsKeyFile: optional('KAFKA_TLS_KEY_FILE', anyText, 'no client certificate', { doc: 'PEM file of the client certificate\'s key' }),
  tlsKeyPassword: optional('KAFKA_TLS_KEY_PASSWORD', anyText, 'the key is not encrypted', { doc: 'Passphrase of that key', isSecret: true }),

  // Topics and groups
  topicPrefix: setting('POSTHOUSE_TOPIC_PREFIX', textMatching(/^[a-zA-Z0-9._-]{0,200}$/, 'letters, digits, ".", "_", "-", at most 200'), 'webhooks.',
    { doc: 'Put before the name of every topic of ours' }),
  partitions: setting('POSTHOUSE_PARTITIONS', wholeNumber({ from: 1, to: 10_000 }), '12',
    { doc: 'Partitions of a topic when it is created: the most processes that can share the work', usedBy: [] }),
  tierPartitions: setting('POSTHOUSE_TIER_PARTITIONS', wholeNumber({ from: 1, to: 10_000 }), '3',
    { doc: 'Partitions of a retry tier when it is created', usedBy: [] }),
  replicationFactor: optional('POSTHOUSE_REPLICATION_FACTOR', wholeNumber({ from: 1, to: 99 }), 'the brokers\' default',
    { doc: 'Replicas of a topic when it is created', usedBy: [] }),
  groupPrefix: setting('POSTHOUSE_GROUP_PREFIX', textMatching(/^[\w.-]{1,100}$/, 'letters, digits, ".", "_", "-", at most 100'), 'posthouse',
    { doc: 'Put before the name of every consumer group' }),

  // Events in
  eventsTopics: optional('POSTHOUSE_EVENTS_TOPICS', listOf(topicName), '<topic prefix>events',
    { doc: 'Topics events are read from, full names', usedBy: ['router', 'admin'] }),
  eventsStart: setting('POSTHOUSE_EVENTS_START', eventsStart, 'latest',
    { doc: 'Where an events topic is read from at the very first start: latest, earliest or an ISO time', usedBy: ['router', 'admin'] }),
  eventIdField: setting('POSTHOUSE_EVENT_ID_FIELD', fieldName, 'id', { doc: 'Field of a JSON event that holds its id', usedBy: ['router'] }),
  eventTypeField: setting('POSTHOUSE_EVENT_TYPE_FIELD', fieldName, 'type', { doc: 'Field of a JSON event that holds its type', usedBy: ['router'] }),
  eventTenantField: setting('POSTHOUSE_EVENT_TENANT_FIELD', fieldName, 'tenant', { doc: 'Field of a JSON event that holds its tenant', usedBy: ['router'] }),
  eventTypeConstant: optional('POSTHOUSE_EVENT_TYPE_CONSTANT', eventType, 'the type is read from the event',
    { doc: 'Type of every event that does not name one in a header', usedBy: ['router'] }),
  eventTypeFromTopic: setting('POSTHOUSE_EVENT_TYPE_FROM_TOPIC', yesOrNo, 'false',
    { doc: 'Take the topic\'s name as the type of an event that does not name one in a header', usedBy: ['router'] }),

  // Retries: the default of a subscription that sets nothing
  retryStrategy: setting('POSTHOUSE_RETRY_STRATEGY', oneOf('standard', 'exponential'), 'standard', { doc: 'How the waits between attempts are chosen', usedBy: ['delivery', 'admin'] }),
  retrySchedule: setting('POSTHOUSE_RETRY_SCHEDULE', listOf(anyDelay, { mayRepeat: true }), '1m,5m,30m,2h,8h,24h,48h',
    { doc: 'Waits between attempts (standard)', usedBy: ['delivery', 'admin'] }),
  retryBase: setting('POSTHOUSE_RETRY_BASE', duration({ fromMs: 1, toMs: dayMs }), '60s', { doc: 'First wait (exponential)', usedBy: ['delivery', 'admin'] }),
  retryMax: setting('POSTHOUSE_RETRY_MAX', anyDelay, '24h', { doc: 'Longest wait (exponential)', usedBy: ['delivery', 'admin'] }),
  retryMaxAttempts: optional('POSTHOUSE_RETRY_MAX_ATTEMPTS', wholeNumber({ from: policyBounds.maxAttempts.min, to: policyBounds.maxAttempts.max }), 'one more than the schedule has waits',
    { doc: 'Attempts before a delivery is dead', usedBy: ['delivery', 'admin'] }),
  retryAdaptive: optional('POSTHOUSE_RETRY_ADAPTIVE', yesOrNo, 'true for exponential, false for standard',
    { doc: 'Halve or double waits by the endpoint\'s health', usedBy: ['delivery', 'admin'] }),
  retryJitter: setting('POSTHOUSE_RETRY_JITTER', oneOf(...jitterKinds), 'additive', { doc: 'How waits are spread', usedBy: ['delivery', 'admin'] }),
  attemptTimeout: setting('POSTHOUSE_ATTEMPT_TIMEOUT', duration({ fromMs: policyBounds.timeoutMs.min, toMs: policyBounds.timeoutMs.max }), '30s',
    { doc: 'One deadline over the whole attempt', usedBy: ['delivery', 'admin'] }),
  deliveryExpiry: setting('POSTHOUSE_DELIVERY_EXPIRY', duration({ fromMs: secondMs, toMs: maxTotalMs }), '14d',
    { doc: 'Age at which a delivery is given up, counted from when it was routed or replayed', usedBy: ['delivery', 'admin'] }),
  tiers: setting('POSTHOUSE_TIERS', listOf(anyDelay), '10s,1m,5m,30m,2h,8h,24h,48h',
    { doc: 'Delays of the retry tiers, shortest first', usedBy: ['delivery', 'retry-tier', 'admin'] }),
  servedTiers: optional('POSTHOUSE_RETRY_TIERS', listOf(tierName), 'every retry topic there is',
    { doc: 'Tiers this process serves', usedBy: ['retry-tier'] }),

  // Delivery
  windowBytes: setting('POSTHOUSE_WINDOW_BYTES', byteSize({ from: 2 ** 20, to: 64 * 2 ** 30 }), '256MiB',
    { doc: 'Memory for deliveries that were read and are not done', usedBy: ['delivery', 'retry-tier'] }),
  maxInFlight: setting('POSTHOUSE_MAX_IN_FLIGHT', wholeNumber({ from: 1, to: 100_000 }), '1024',
    { doc: 'Requests in flight at once in a process', usedBy: ['delivery'] }),
  endpointCapStart: setting('POSTHOUSE_ENDPOINT_CAP_START', wholeNumber({ from: 1, to: 10_000 }), '10',
    { doc: 'Requests in flight to one endpoint, to begin with', usedBy: ['delivery'] }),
  endpointCapMax: setting('POSTHOUSE_ENDPOINT_CAP_MAX', wholeNumber({ from: 1, to: 10_000 }), '256',
    { doc: 'The most this may grow to', usedBy: ['delivery'] }),
  parkDelays: setting('POSTHOUSE_PARK_DELAYS', listOf(anyDelay, { mayRepeat: true }), '10s,1m,5m,30m',
    { doc: 'How long the overflow of a slow endpoint is parked: first time, second time ..., the last one again and again', usedBy: ['delivery'] }),
  responseExcerpt: setting('POSTHOUSE_RESPONSE_EXCERPT', yesOrNo, 'true',
    { doc: 'Keep the first 1 KiB of responses in the records of attempts', usedBy: ['delivery'] }),
  drainTimeout: setting('POSTHOUSE_DRAIN_TIMEOUT', duration({ fromMs: 0, toMs: 10 * 60 * secondMs }), '35s',
    { doc: 'How long a stop waits for what is in flight; the process ends at most 10 s later' }),

  // Safety
  allowHttp: setting('POSTHOUSE_ALLOW_HTTP', yesOrNo, 'false', { doc: 'Allow endpoints with http: URLs' }),
  allowAddresses: optional('POSTHOUSE_ALLOW_ADDRESSES', listOf(allowedNetwork), 'public addresses only',
    { doc: 'Networks that deliveries may reach although they are not public: CIDRs, with ports if wanted' }),
  caFile: optional('POSTHOUSE_CA_FILE', anyText, 'the certificate authorities Node.js carries',
    { doc: 'PEM file of further authorities that may sign endpoints\' certificates', usedBy: ['delivery'] }),

  // The admin service
  adminTokens: optional('POSTHOUSE_ADMIN_TOKENS', listOf(adminToken), 'the HTTP API answers nobody',
    { doc: 'Tokens that open the HTTP API of the admin service', usedBy: ['admin'], isSecret: true }),
  adminTokensFile: optional('POSTHOUSE_ADMIN_TOKENS_FILE', anyText, 'only those of POSTHOUSE_ADMIN_TOKENS',
    { doc: 'File with such tokens, one a line', usedBy: ['admin'] }),
  adminRecentAttempts: setting('POSTHOUSE_ADMIN_RECENT_ATTEMPTS', wholeNumber({ from: 0, to: 100_000_000 }), '100000',
    { doc: 'Attempts the admin service keeps at hand for the history of deliveries, in a temporary file', usedBy: ['admin'] }),

  // The process
  httpPort: setting('POSTHOUSE_HTTP_PORT', wholeNumber({ from: 0, to: 65_535 }), '9400', { doc: 'Port of /metrics, /readyz and /livez; 0: any free one', usedBy: serviceNames }),
  httpHost: setting('POSTHOUSE_HTTP_HOST', textMatching(/^[a-zA-Z0-9.:_-]{1,253}$/, 'an address or a host name'), '0.0.0.0',
    { doc: 'Address that port is opened on', usedBy: serviceNames }),
  logLevel: setting('POSTHOUSE_LOG_LEVEL', oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', { doc: 'Least severe lines that are logged', usedBy: serviceNames }),
  endWithStdin: setting('POSTHOUSE_END_WITH_STDIN', yesOrNo, 'false',
    { doc: 'Stop when standard input closes: for a supervisor that must leave nobody behind', usedBy: serviceNames }),
} as const

export type SettingKey = keyof typeof settings
type ValueOf<Key extends SettingKey> = (typeof settings)[Key] extends Setting<infer Value> ? Value : never

/** The value of every setting, flat, before it is nested into a Config. */
export type Values = { readonly [Key in SettingKey]: ValueOf<Key> }
