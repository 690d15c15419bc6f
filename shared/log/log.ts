import { pino, type DestinationStream } from 'pino'
import { redactFields, redactText } from './redact.ts'

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]
export type LogFields = Readonly<Record<string, unknown>>
type Write = (message: string, fields?: LogFields) => void

/** Lines of JSON, one object each: `level`, `time` (ISO, UTC), `service`, `pid`, `msg`, then the fields. An `error` field is described, not dumped. */
export type Log = {
  readonly fatal: Write
  readonly error: Write
  readonly warn: Write
  readonly info: Write
  readonly debug: Write
  readonly trace: Write
  /** The same log with fields that every line of it carries. */
  child(fields: LogFields): Log
  /** Whether lines of this level are written: for fields that cost something to gather. */
  writes(level: Exclude<LogLevel, 'silent'>): boolean
  /** The shape in which the Kafka code logs. */
  readonly forKafka: (level: 'error' | 'warn' | 'info' | 'debug', message: string, fields: object) => void
  /** Writes what is buffered, blocking for at most a second: for the end of the process. */
  flush(): void
  /** Lines lost because whoever reads standard output did not keep up. */
  dropped(): number
}

export type LogOptions = {
  readonly service: string
  readonly level: LogLevel
  /** Standard output when left out. */
  readonly destination?: DestinationStream
}

const maxBufferedBytes = 8 * 2 ** 20
const flushDeadlineMs = 1_000

/**
 * Writes without blocking: a log reader that stalls must not stall heartbeats. What it does not take within 8 MiB is dropped and counted.
 * No secret, no header value and of a URL no more than its host gets out, whatever a caller passes.
 */
export const createLog = ({ service, level, destination }: LogOptions): Log => {
  const output = destination === undefined ? standardOutput() : { stream: destination, flush: () => {}, dropped: () => 0 }
  const logger = pino({
    level,
    base: { service, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    hooks: { streamWrite: redactText },
  }, output.stream)
  return wrap(logger, output)
}

const standardOutput = (): { stream: DestinationStream; flush: () => void; dropped: () => number } => {
  let dropped = 0
  let giveUpAt = Infinity
  let hasGivenUp = false
  const flush = (): void => {
    if (hasGivenUp) return
    giveUpAt = performance.now() + flushDeadlineMs
    try {
      stream.flushSync()
      giveUpAt = Infinity
    } catch {
      dropped++
      hasGivenUp = true
      // Or pino would flush once more, without a deadline, when the process exits.
      stream.destroy()
    }
  }
  // Before pino's own, for the same reason.
  process.once('exit', flush)
  const stream = pino.destination({
    // Not 1: asking for process.stdout sets the descriptor to non-blocking, without which a stalled reader also stalls the end of the process.
    dest: process.stdout.fd, sync: false, maxLength: maxBufferedBytes,
    // A pipe that nobody reads answers EAGAIN for ever, and the last flush would never end.
    retryEAGAIN: () => performance.now() < giveUpAt,
  })
  stream.on('drop', () => dropped++)
  // Nothing can be said about it: the place to say it is what failed. pino deals with EPIPE itself.
  stream.on('error', () => dropped++)
  return { stream, flush, dropped: () => dropped }
}

const wrap = (logger: pino.Logger, output: { flush: () => void; dropped: () => number }): Log => {
  const write = (level: pino.Level): Write => (message, fields) => {
    if (!logger.isLevelEnabled(level)) return
    // Stacks only where a person will look for a bug.
    logger[level](fields === undefined ? {} : redactFields(fields, { withStack: level === 'fatal' || level === 'error' }), message)
  }
  return {
    fatal: write('fatal'), error: write('error'), warn: write('warn'), info: write('info'), debug: write('debug'), trace: write('trace'),
    child: (fields) => wrap(logger.child(redactFields(fields)), output),
    writes: (level) => logger.isLevelEnabled(level),
    forKafka: (level, message, fields) => write(level)(message, fields as LogFields),
    flush: output.flush,
    dropped: output.dropped,
  }
}
