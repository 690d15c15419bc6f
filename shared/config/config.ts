import { readFileSync } from 'node:fs'
import type { Policy } from '../domain/policy.ts'
import { readAdminTokens } from './admin-tokens.ts'
import { checkTogether } from './checks.ts'
import { defaultPolicyOf } from './default-policy.ts'
import { readAuthorities, type ReadText, type Report } from './files.ts'
import { kafkaSettings, type KafkaSettings } from './kafka-settings.ts'
import { unknownNames } from './names.ts'
import type { AllowedNetwork } from './networks.ts'
import { expectedInstead, type EventsStart } from './parsers.ts'
import { settings, type Setting, type Values } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Everything the environment decides, validated whole and frozen. Durations in ms, sizes in bytes. */
export type Config = {
  readonly kafka: KafkaSettings
  readonly topics: {
    readonly prefix: string
    readonly partitions: number
    readonly tierPartitions: number
    /** null: the brokers' default. */
    readonly replicationFactor: number | null
  }
  readonly groupPrefix: string
  readonly events: {
    readonly topics: readonly string[]
    readonly start: EventsStart
    readonly idField: string
    readonly tenantField: string
    /** Where the type of an event comes from that names none in a header. */
    readonly type: { readonly kind: 'field'; readonly name: string } | { readonly kind: 'constant'; readonly value: string } | { readonly kind: 'topic' }
  }
  /** What a subscription gets that sets nothing for itself. */
  readonly policy: Policy
  readonly deliveryExpiryMs: number
  readonly tiersMs: readonly number[]
  /** Ends of topic names (`soon`, `10s`) this retry-tier process serves; null: every retry topic there is. */
  readonly servedTiers: readonly string[] | null
  readonly delivery: {
    readonly windowBytes: number
    readonly maxInFlight: number
    readonly endpointCapStart: number
    readonly endpointCapMax: number
    readonly parkDelaysMs: readonly number[]
    readonly keepsExcerpt: boolean
  }
  readonly drainTimeoutMs: number
  readonly safety: {
    readonly allowsHttp: boolean
    readonly allowedNetworks: readonly AllowedNetwork[]
    /** PEM text of further authorities for endpoints, or null. */
    readonly endpointCa: string | null
  }
  readonly admin: {
    /** Each opens the HTTP API; none: it is closed. */
    readonly tokens: readonly string[]
    readonly recentAttempts: number
  }
  readonly http: { readonly port: number; readonly host: string }
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
  readonly endsWithStdin: boolean
}

export type ConfigResult = { readonly config: Config; readonly warnings: readonly string[] } | { readonly problems: readonly string[] }

/**
 * Reads the environment (and the certificate files it names), once. Every mistake is reported, not the first only; an empty variable counts as unset.
 * Callers print the problems and end with exit code 78. `requireKafka: false` is for commands that stand alone.
 */
export const readConfig = (
  env: Environment,
  { requireKafka = true, readText = (path) => readFileSync(path, 'utf8') }: { requireKafka?: boolean; readText?: ReadText } = {},
): ConfigResult => {
  const problems: string[] = [...unknownNames(env)]
  const warnings: string[] = []
  const report: Report = (problem) => problems.push(problem)
  const warn: Report = (warning) => warnings.push(warning)

  if (env['SCHEMA_REGISTRY_URL']) {
    report('SCHEMA_REGISTRY_URL is set, but this version cannot use a schema registry yet: remove it (records are written in Avro\'s single-object encoding)')
  }
  const before = problems.length
  const values = readValues(env, report)
  // A value that could not be read stands at its default; judging it beside others would report mistakes nobody made.
  if (problems.length === before) checkTogether(values, report, warn)
  const kafka = kafkaSettings(values, { requireKafka: requireKafka && !env['KAFKA_BROKERS'], readText, report, warn })
  const endpointCa = readAuthorities('POSTHOUSE_CA_FILE', values.caFile, readText, report)
  const adminTokens = readAdminTokens(values, readText, report)
  return problems.length > 0 ? { problems } : { config: freezeDeeply(nest(values, kafka, endpointCa, adminTokens)), warnings }
}

const readValues = (env: Environment, report: Report): Values => {
  const values: Record<string, unknown> = {}
  for (const [key, { name, schema, isSecret }] of Object.entries<Setting<unknown>>(settings)) {
    const text = env[name]?.trim() || undefined
    const { data, error } = schema.safeParse(text)
    if (text !== undefined && error !== undefined) {
      report(`${name} is ${isSecret ? 'not usable' : `"${text}"`}: give ${expectedInstead(error, text, isSecret)}`)
    }
    values[key] = error === undefined ? data : schema.parse(undefined)
  }
  // Each key was filled by the schema of its own setting, which is what Values says.
  return values as Values
}

const nest = (values: Values, kafka: KafkaSettings, endpointCa: string | null, adminTokens: readonly string[]): Config => ({
  kafka,
  topics: {
    prefix: values.topicPrefix, partitions: values.partitions, tierPartitions: values.tierPartitions, replicationFactor: values.replicationFactor,
  },
  groupPrefix: values.groupPrefix,
  events: {
    topics: values.eventsTopics ?? [`${values.topicPrefix}events`],
    start: values.eventsStart,
    idField: values.eventIdField,
    tenantField: values.eventTenantField,
    type: values.eventTypeConstant !== null
      ? { kind: 'constant', value: values.eventTypeConstant }
      : values.eventTypeFromTopic ? { kind: 'topic' } : { kind: 'field', name: values.eventTypeField },
  },
  policy: defaultPolicyOf(values),
  deliveryExpiryMs: values.deliveryExpiry,
  tiersMs: values.tiers,
  servedTiers: values.servedTiers,
  delivery: {
    windowBytes: values.windowBytes, maxInFlight: values.maxInFlight,
    endpointCapStart: values.endpointCapStart, endpointCapMax: values.endpointCapMax,
    parkDelaysMs: values.parkDelays, keepsExcerpt: values.responseExcerpt,
  },
  drainTimeoutMs: values.drainTimeout,
  safety: { allowsHttp: values.allowHttp, allowedNetworks: values.allowAddresses ?? [], endpointCa },
  admin: { tokens: adminTokens, recentAttempts: values.adminRecentAttempts },
  http: { port: values.httpPort, host: values.httpHost },
  logLevel: values.logLevel,
  endsWithStdin: values.endWithStdin,
})

const freezeDeeply = <Value>(value: Value): Value => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) freezeDeeply(inner)
  }
  return value
}
