/**
 * npm test [-- [--require-kafka] [--test-...] [files, folders, globs or parts of names]]
 *
 * Runs node's test runner with one Kafka for all tests, fresh and gone afterwards. POSTHOUSE_TEST_KAFKA=host:port names another one.
 */
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { projectRoot } from '../deploy/dev/folders.ts'
import { startLocalKafka } from '../deploy/dev/kafka/kafka.ts'
import { MissingToolError } from '../deploy/dev/kafka/tools.ts'
import { spawnLeashed, type Ended } from '../deploy/dev/leash.ts'

const brokersVariable = 'POSTHOUSE_TEST_KAFKA'
/** A test that hangs fails; the longest ones restart a broker a few times. */
const testTimeoutMs = 300_000
/** The runner's own time limit cannot end a test that never yields. */
const runTimeoutMs = 20 * 60_000
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type Kafka = {
  readonly brokers: string | null
  /** Why there is none. */
  readonly reason: string | null
  stop(): Promise<void>
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  const isKafkaRequired = args.includes('--require-kafka')
  const interrupted = nextSignal()
  const kafka = await startKafka()
  try {
    if (kafka.reason !== null) {
      say(`${isKafkaRequired ? 'Nothing was tested' : 'Tests that need Kafka are skipped'}: ${kafka.reason}`)
      if (isKafkaRequired) return 1
    }
    const exitCode = await runTests(args.filter((arg) => arg !== '--require-kafka'), kafka.brokers, interrupted)
    if (kafka.reason !== null) say(`Tests that need Kafka were skipped: ${kafka.reason}`)
    return exitCode
  } finally {
    await kafka.stop()
  }
}

/** The one named by the environment, one of our own, or none where a tool for it is missing. What else goes wrong is an error. */
async function startKafka(): Promise<Kafka> {
  const given = process.env[brokersVariable]
  if (given) return { brokers: given, reason: null, stop: async () => undefined }
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-test-'))
  const removeFolder = () => rm(folder, { recursive: true, force: true })
  try {
    const kafka = await startLocalKafka({ folder, fresh: true })
    const stop = async (): Promise<void> => {
      await kafka.stop()
      await removeFolder()
    }
    return { brokers: kafka.brokers, reason: null, stop }
  } catch (error) {
    await removeFolder()
    if (!(error instanceof MissingToolError)) throw error
    return { brokers: null, reason: error.message, stop: async () => undefined }
  }
}

async function runTests(args: readonly string[], brokers: string | null, interrupted: Promise<NodeJS.Signals>): Promise<number> {
  const options = args.filter((arg) => arg.startsWith('-'))
  const patterns = args.filter((arg) => !arg.startsWith('-')).map(toPattern)
  const runner = await spawnLeashed({
    command: process.execPath,
    args: [
      '--test', '--test-reporter=spec', '--test-concurrency=2', `--test-timeout=${testTimeoutMs}`, ...options,
      ...(patterns.length > 0 ? patterns : ['test/**/*.test.ts']),
    ],
    cwd: projectRoot,
    env: { ...process.env, ...(brokers === null ? {} : { [brokersVariable]: brokers }) },
    graceMs: 5_000,
    onLine: 'inherit',
  })
  const tooLong = AbortSignal.timeout(runTimeoutMs)
  const timedOut = new Promise<'timeout'>((resolve) => tooLong.addEventListener('abort', () => resolve('timeout')))
  const reason = await Promise.race([interrupted, timedOut, runner.ended.then(() => null)])
  if (reason === null) return exitCodeOf(await runner.ended)
  await runner.terminate(10_000)
  if (reason !== 'timeout') return 128 + constants.signals[reason]
  say(`The tests had not ended after ${runTimeoutMs / 60_000} minutes and were ended: the first file without a result hangs.`)
  return 1
}

/** `kafka` stands for every test file with it in its path; a folder for what is in it; files and globs for themselves. */
function toPattern(given: string): string {
  const path = relative(projectRoot, given)
  if (existsSync(given)) return statSync(given).isDirectory() ? join(path, '**/*.test.ts') : path
  return /[*?{[]/.test(given) ? given : `test/**/{*${given}*/**/*,*${given}*}.test.ts`
}

function exitCodeOf({ code, signal }: Ended): number {
  return signal === null ? (code ?? 1) : 128 + constants.signals[signal]
}

/** The first signal that asks us to end. From now on they do not end us, so that what was started is stopped in order. */
function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, resolve)
  })
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
