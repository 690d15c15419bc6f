import { readConfig, type Config, type Environment } from '../config/config.ts'
import type { ServiceName } from '../config/settings.ts'
import { createLog, type Log } from '../log/log.ts'
import { createMetrics, type Metrics } from '../metrics/registry.ts'
import { version } from '../version.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'

export type ServiceContext = {
  readonly config: Config
  readonly log: Log
  readonly metrics: Metrics
  /** Aborted when a stop was asked for: a start that still waits for Kafka is to give up then. */
  readonly signal: AbortSignal
}

export type RunningService = {
  /** Stops taking, lets what is in flight end, commits, closes. May be called again and joins. */
  close(): Promise<void>
  /** Resolves, never rejects, when the service can do nothing more by itself, such as after its consumer died. */
  readonly failed?: Promise<Error>
}

export type ServiceDefinition = {
  readonly name: ServiceName
  readonly start: (context: ServiceContext) => Promise<RunningService>
  readonly env?: Environment
  /** Over the drain, for the commits and the closing that come after it. Kubernetes kills after terminationGracePeriodSeconds, to be set above the sum. */
  readonly closeGraceMs?: number
}

type Ending = { readonly reason: string; readonly error?: Error }

/**
 * Runs a service as the whole of this process, and ends the process:
 * 78 when the configuration is wrong (every problem is on stderr); 0 after a stop that was asked for (SIGTERM, SIGINT, the parent's pipe) and ended
 * in time; 1 when the service failed, an error was thrown nowhere caught, or the stop did not end in time; 130 or 143 on a second signal.
 * A Kafka that is away is no error: the service waits for it, not ready.
 */
export const runService = async ({ name, start, env = process.env, closeGraceMs = 10_000 }: ServiceDefinition): Promise<never> => {
  const result = readConfig(env)
  if ('problems' in result) {
    process.stderr.write(`posthouse ${name}: the configuration is wrong\n${result.problems.map((problem) => `  ${problem}\n`).join('')}`)
    process.exit(exitCodes.configuration)
  }
  const { config, warnings } = result
  const log = createLog({ service: name, level: config.logLevel })
  const exit = (code: ExitCode): never => {
    log.flush()
    process.exit(code)
  }
  const dieOf = (what: string) => (error: unknown): void => {
    log.fatal(`${what}: the state of this process is unknown, so it ends at once`, { error })
    exit(exitCodes.failed)
  }
  process.on('uncaughtException', dieOf('an error was thrown where nobody expected it'))
  process.on('unhandledRejection', dieOf('a promise was rejected where nobody expected it'))

  log.info('starting', { version, node: process.version })
  for (const warning of warnings) log.warn(warning)
  const stop = listenForStop(config, log, exit)
  const metrics = createMetrics({ version, service: name })

  const starting = start({ config, log, metrics, signal: stop.signal })
  const failing = starting.then((running) => running.failed ?? never, (error: unknown) => error instanceof Error ? error : new Error(String(error)))
  const ending: Ending = await Promise.race([
    stop.asked.then((reason) => ({ reason })),
    failing.then((error) => ({ reason: 'failed', error })),
  ])

  const deadlineMs = config.drainTimeoutMs + closeGraceMs
  if (ending.error !== undefined) log.fatal('the service failed', { error: ending.error })
  else log.info('stopping', { reason: ending.reason, deadlineMs })
  const deadline = setTimeout(() => {
    log.error('the stop did not end in time: what was in flight is repeated by the next owner', { deadlineMs })
    exit(exitCodes.failed)
  }, deadlineMs)
  // Whatever was asked first, a start that is under way sees it too.
  stop.abort(ending.reason)
  const closedWell = await closeStarted(starting, log)
  clearTimeout(deadline)
  log.info('stopped', { failed: ending.error !== undefined || !closedWell })
  return exit(ending.error === undefined && closedWell ? exitCodes.ok : exitCodes.failed)
}

const never = new Promise<never>(() => {})

/** Closes what was started, once it has; true when that went well. A start that gave up has nothing to close. */
const closeStarted = async (starting: Promise<RunningService>, log: Log): Promise<boolean> => {
  let running: RunningService
  try {
    running = await starting
  } catch (error) {
    // Where it failed by itself this is said again, at no harm; else it gave up because it was to, and this is where one can see it.
    log.info('the start was not completed', { error })
    return true
  }
  try {
    await running.close()
    return true
  } catch (error) {
    log.error('closing failed', { error })
    return false
  }
}

/** SIGTERM, SIGINT or, where configured, the end of standard input ask for a stop; a second signal ends the process at once. */
const listenForStop = (config: Config, log: Log, exit: (code: ExitCode) => never): { asked: Promise<string>; signal: AbortSignal; abort: (reason: string) => void } => {
  const controller = new AbortController()
  const { promise: asked, resolve } = Promise.withResolvers<string>()
  let signals = 0
  const onSignal = (name: 'SIGTERM' | 'SIGINT'): void => {
    if (++signals > 1) {
      log.warn('asked again: ending at once, what is in flight is repeated', { signal: name })
      exit(name === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated)
    }
    controller.abort(name)
    resolve(name)
  }
  process.on('SIGTERM', () => onSignal('SIGTERM'))
  process.on('SIGINT', () => onSignal('SIGINT'))
  if (config.endsWithStdin) {
    const onEnd = (): void => {
      controller.abort('standard input closed')
      resolve('standard input closed')
    }
    // An error of the pipe means the same: whoever held it is gone.
    process.stdin.once('end', onEnd).once('error', onEnd).once('close', onEnd).resume()
  }
  return { asked, signal: controller.signal, abort: (reason) => controller.abort(reason) }
}
