import { findLocalKafka, type LocalRun } from '../deploy/dev/run-file.ts'
import { readConfig, type Config, type Environment } from '../shared/config/config.ts'
import { CliError } from './cli-error.ts'

export type Settings = {
  readonly config: Config
  /** What the configuration was read from: the real environment over that of a local run. */
  readonly env: Environment
}

export type EffectiveEnvironment = {
  readonly env: Environment
  /** Names whose value comes from the local run. */
  readonly localNames: ReadonlySet<string>
  readonly local: LocalRun | null
}

/**
 * The environment, over that of this project's local Kafka where one runs. KAFKA_BROKERS in the environment means another cluster, and
 * nothing of the local run is used then.
 */
export function effectiveEnvironment(
  env: Environment = process.env, find: () => LocalRun | null = findLocalKafka,
): EffectiveEnvironment {
  const local = env['KAFKA_BROKERS']?.trim() ? null : find()
  if (local === null) return { env, localNames: new Set(), local: null }
  const offered = Object.entries({ ...local.environment, KAFKA_BROKERS: local.brokers })
    .filter(([name]) => (name === 'KAFKA_BROKERS' || name.startsWith('POSTHOUSE_')) && !env[name]?.trim())
  return { env: { ...env, ...Object.fromEntries(offered) }, localNames: new Set(offered.map(([name]) => name)), local }
}

/** One line that says which Kafka is meant when nobody named one. */
export const announcement = ({ brokers }: LocalRun): string =>
  `KAFKA_BROKERS is not set: this is the local Kafka of this project, ${brokers}, with its settings`

/** Reads the configuration. @throws CliError `configuration` that lists every problem */
export function readSettings(
  effective: EffectiveEnvironment, { requireKafka = true }: { readonly requireKafka?: boolean } = {},
): Settings {
  const result = readConfig(effective.env, { requireKafka })
  if ('config' in result) return { config: result.config, env: effective.env }
  throw wrongConfiguration(result.problems)
}

export const wrongConfiguration = (problems: readonly string[]): CliError => new CliError(
  'configuration', ['the configuration is wrong', ...problems.map((problem) => `  ${problem}`)].join('\n'),
  'see "posthouse config print" for every setting and where its value comes from',
)
