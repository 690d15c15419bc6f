/**
 * node deploy/prometheus/show-alerts.ts [--folder PATH] [--output json]
 *
 * Runs the services with an endpoint that is dead and a real Prometheus that scrapes them and evaluates posthouse.rules.yml as it is, and
 * waits for the three alerts of the retry contract. Ends with 0 when all of them have fired and none had before.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { AlertName } from '../../shared/domain/alert-rules.ts'
import { exitCodes, type ExitCode } from '../../shared/lifecycle/exit-codes.ts'
import { createClosers } from '../../shared/lifecycle/closers.ts'
import { projectRoot } from '../dev/folders.ts'
import { freePorts } from '../dev/kafka/ports.ts'
import { startSupervisor } from '../dev/supervisor.ts'
import { setStage, type Stage } from '../sample/stage.ts'
import { sendEvents } from '../sample/workload.ts'
import { startPrometheus, type ActiveAlert } from './prometheus.ts'

/** What was seen, and what `--output json` prints. */
export type AlertsShown = {
  /** Alerts that fired while all was well: there should be none. */
  readonly before: readonly string[]
  readonly fired: readonly (Pick<ActiveAlert, 'name' | 'value' | 'labels' | 'annotations'> & { readonly afterMs: number })[]
  /** What was waited for in vain. */
  readonly missing: readonly AlertName[]
  /** Attempts made, and those of which it is known how long their delivery had waited: the same, or a few more. */
  readonly attempts: number | null
  readonly attemptsBegun: number | null
  readonly hasAdmin: boolean
}

/** Over 1,000, for the depth, and over 200, as growth is taken over two minutes. */
const events = 1_200
const ratePerSecond = 150
const intervalMs = 500
/** Enough for a few evaluations while nothing is wrong. */
const calmMs = 3_000
const deadlineMs = 180_000
const adminFile = 'services/admin/main.ts'

const stop = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => stop.abort(new Error(`ended by ${name}`)))
const { values: options } = parseArgs({ options: { folder: { type: 'string' }, output: { type: 'string' } } })
const isJson = options.output === 'json'
const startedAt = performance.now()
const say = (line: string): void => void process.stderr.write(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`)

process.exitCode = await main()
// Clients of a Kafka that is gone may still try to reach it.
process.exit()

async function main(): Promise<ExitCode> {
  const folder = options.folder ?? await mkdtemp(join(tmpdir(), 'posthouse-alerts-'))
  const closers = createClosers()
  try {
    const stage = await setStage({
      options: { isOnce: true, isJson, endpoints: ['healthy', 'dead'], events, rate: ratePerSecond, kill: null, sabotage: null, folder },
      folder, say, signal: stop.signal,
    })
    closers.add('the sample', stage.close)
    const shown = await show(stage, folder, closers.add)
    if (isJson) process.stdout.write(`${JSON.stringify(shown)}\n`)
    return shown.missing.length === 0 && shown.before.length === 0 ? exitCodes.ok : exitCodes.failed
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return exitCodes.failed
  } finally {
    await closers.close()
    if (options.folder === undefined) await rm(folder, { recursive: true, force: true })
  }
}

async function show(stage: Stage, folder: string, onClose: (name: string, close: () => Promise<void>) => void): Promise<AlertsShown> {
  const targets = Object.values(stage.services.metricsUrls).map((url) => new URL(url).host)
  const hasAdmin = 'admin' in stage.services.metricsUrls || existsSync(join(projectRoot, 'services/admin/service.ts'))
  if (hasAdmin && !('admin' in stage.services.metricsUrls)) targets.push(await startAdmin(stage, onClose))
  const prometheus = await startPrometheus({
    targets, folder: join(folder, 'prometheus'), intervalMs, rulesFile: join(projectRoot, 'deploy/prometheus/posthouse.rules.yml'),
    onLine: (line) => say(`Prometheus: ${line}`),
  })
  onClose('Prometheus', prometheus.stop)
  say(`Prometheus: ${prometheus.url}`)
  await Promise.race([prometheus.waitScraped(60_000, stop.signal), stage.failed])
  await delay(calmMs, undefined, { signal: stop.signal })
  const firing = async (): Promise<readonly ActiveAlert[]> => (await prometheus.alerts()).filter(({ state }) => state === 'firing')
  const before = (await firing()).map(({ name }) => name)
  say(before.length === 0 ? 'nothing fires' : `fires although all is well: ${before.join(', ')}`)

  say(`${events} events for an endpoint that is well and one that is dead`)
  const sentAt = performance.now()
  const sending = sendEvents({
    producer: stage.broker.producer, topic: stage.broker.eventsTopic, count: events, ratePerSecond, onAcknowledged: stage.ledger.acknowledged, signal: stop.signal,
  })
  const wanted: readonly AlertName[] = [
    'PosthouseExhaustionRateHigh', 'PosthouseDeadLettersGrowing', ...(hasAdmin ? ['PosthouseDeadLetterDepthHigh' as const] : []),
  ]
  if (!hasAdmin) say('PosthouseDeadLetterDepthHigh is not waited for: this version has no admin service')
  const fired = new Map<string, AlertsShown['fired'][number]>()
  const isMissing = (name: string): boolean => !fired.has(name)
  // All attempts are over before they are counted.
  const isOver = (): boolean => stage.deadLetters() >= events
  while ((wanted.some(isMissing) || !isOver()) && performance.now() - sentAt < deadlineMs) {
    await Promise.race([delay(intervalMs, undefined, { signal: stop.signal }), stage.failed, sending.then(() => new Promise<never>(() => {}))])
    for (const { name, value, labels, annotations } of await firing()) {
      if (fired.has(name)) continue
      fired.set(name, { name, value, labels, annotations, afterMs: Math.round(performance.now() - sentAt) })
      say(`FIRING  ${name} (${labels['severity']}): ${annotations['description']}`)
    }
  }
  await delay(2 * intervalMs)
  const missing = wanted.filter(isMissing)
  say(missing.length === 0 ? 'all of them have fired' : `did not fire within ${deadlineMs / 1_000} s: ${missing.join(', ')}`)
  return {
    before, fired: [...fired.values()], missing, hasAdmin,
    attempts: await prometheus.value('posthouse_attempts_total'), attemptsBegun: await prometheus.value('posthouse_attempt_start_delay_seconds_count'),
  }
}

/** The service that counts the dead letters there are; resolves with what to scrape. */
async function startAdmin({ environment, logFolder }: Stage, onClose: (name: string, close: () => Promise<void>) => void): Promise<string> {
  const [port] = await freePorts(1)
  const env = { ...environment, POSTHOUSE_HTTP_HOST: '127.0.0.1', POSTHOUSE_HTTP_PORT: String(port) }
  const supervisor = await startSupervisor({ processes: [{ name: 'admin', file: adminFile, env }], logFolder, stopWaitMs: 10_000 })
  onClose('admin', supervisor.stop)
  return `127.0.0.1:${port}`
}
