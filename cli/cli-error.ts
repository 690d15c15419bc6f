import { CommanderError } from 'commander'
import { isKafkaTrouble, kafkaErrorType } from '../shared/kafka/client.ts'
import { ProduceError } from '../shared/kafka/produce-error.ts'
import { exitCodes, type ExitCode } from '../shared/lifecycle/exit-codes.ts'

/** What a command ends with; the code of an error is one of these names, in lower case with `_`. */
const exitCodeOf = {
  failed: exitCodes.failed,
  usage: exitCodes.usage,
  confirmation_needed: exitCodes.usage,
  not_found: exitCodes.notFound,
  conflict: exitCodes.conflict,
  drift: exitCodes.conflict,
  partial: exitCodes.partial,
  unreachable: exitCodes.unreachable,
  timed_out: exitCodes.timedOut,
  configuration: exitCodes.configuration,
  interrupted: exitCodes.interrupted,
  terminated: exitCodes.terminated,
} as const satisfies Record<string, ExitCode>

export type CliErrorCode = keyof typeof exitCodeOf

/** An end of a command that is no success: what happened to which thing (`message`), and what to do (`hint`). */
export class CliError extends Error {
  readonly code: CliErrorCode
  readonly hint: string | null

  constructor(code: CliErrorCode, message: string, hint: string | null = null, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CliError'
    this.code = code
    this.hint = hint
  }

  get exitCode(): ExitCode {
    return exitCodeOf[this.code]
  }
}

export const unreachable = (brokers: readonly string[], cause?: unknown): CliError => new CliError(
  'unreachable',
  `Kafka at ${brokers.join(', ')} cannot be reached${cause === undefined ? '' : `: ${innermostMessage(cause)}`}`,
  'check that it runs and that KAFKA_BROKERS and KAFKA_SECURITY_PROTOCOL are right',
  { cause },
)

/** Whatever was thrown, as an end of the command. What nobody foresaw is our bug, and says so. */
export function toCliError(error: unknown, brokers: readonly string[] = []): CliError {
  if (error instanceof CliError) return error
  if (error instanceof CommanderError) return new CliError('usage', error.message.replace(/^error: /, ''))
  if (error instanceof ProduceError) {
    return new CliError(error.reason === 'unknown_topic' ? 'not_found' : 'failed', error.message, null, { cause: error })
  }
  const type = kafkaErrorType(error)
  if (innermostName(error) === 'KafkaJSSASLAuthenticationError') {
    return new CliError(
      'configuration', `Kafka refuses the login: ${innermostMessage(error)}`,
      'check KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD', { cause: error },
    )
  }
  if (type?.endsWith('_AUTHORIZATION_FAILED')) {
    return new CliError(
      'failed', `Kafka does not allow it: ${type}`, 'give this user the right in the cluster\'s ACLs', { cause: error },
    )
  }
  if (type !== null && type !== 'UNKNOWN') {
    return new CliError(
      'failed', `Kafka refuses it: ${type}: ${innermostMessage(error)}`, null, { cause: error },
    )
  }
  if (isKafkaTrouble(error)) return unreachable(brokers, error)
  const message = error instanceof Error ? error.message : String(error)
  return new CliError(
    'failed', message, 'if this looks like a bug of posthouse, run it again with --verbose and report it', { cause: error },
  )
}

function innermost(error: unknown): unknown {
  let at = error
  for (let depth = 0; depth < 10 && at instanceof Error && at.cause instanceof Error && at.cause !== at; depth++) at = at.cause
  return at
}

const innermostName = (error: unknown): string => String((innermost(error) as { name?: unknown } | null)?.name)
const innermostMessage = (error: unknown): string => {
  const found = innermost(error)
  return found instanceof Error ? found.message : String(found)
}
