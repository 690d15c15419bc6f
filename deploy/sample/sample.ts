import { setTimeout as delay } from 'node:timers/promises'
import { exitCodes, type ExitCode } from '../../shared/lifecycle/exit-codes.ts'
import { stateFolder } from '../dev/folders.ts'
import { isClosed, type Account } from './account.ts'
import type { Health } from './broker-side.ts'
import { hints } from './hints.ts'
import { killAgainAndAgain } from './killing.ts'
import type { SampleOptions } from './options.ts'
import { readProgress } from './progress.ts'
import type { Screen } from './screen.ts'
import { createSettling, type Verdict } from './settling.ts'
import { setStage, type Stage } from './stage.ts'
import { describeAccount, describeScene, drawScene, drawTable, type Scene } from './view.ts'
import { sendEvents } from './workload.ts'

/** A look costs the services a few ms each: on a pipe it may be rarer. */
const lookMs = { live: 1_000, plain: 2_000 }
/** Between two lines where the screen is a pipe. */
const plainLineMs = 10_000

/**
 * Runs the sample from Kafka's start to its end. Resolves with 0 when the account closed, 1 when it did not.
 * @throws when something could not be started or has ended by itself, and the signal's reason when it aborts before the account is drawn
 */
export async function runSample({ options, screen, print, signal }: {
  readonly options: SampleOptions
  readonly screen: Screen
  /** Takes what `--output json` prints. */
  readonly print: (text: string) => void
  readonly signal: AbortSignal
}): Promise<ExitCode> {
  const folder = options.folder ?? stateFolder
  const startedAt = performance.now()
  const stage = await setStage({ options, folder, say: screen.say, signal })
  try {
    const { account, verdict } = await drive(stage, options, screen, startedAt, signal)
    const isGood = isClosed(account)
    report(stage, { account, isGood, verdict }, screen)
    if (options.isJson) print(`${JSON.stringify(account)}\n`)
    if (options.isOnce) return isGood ? exitCodes.ok : exitCodes.failed
    for (const line of hints(stage, options.folder === null && !process.env['KAFKA_BROKERS'])) screen.say(line)
    await stayUp(stage, options, screen, startedAt, signal)
    return exitCodes.ok
  } finally {
    screen.show([])
    if (!options.isJson) screen.say('ending ...')
    await stage.close()
  }
}

/** Sends the events and watches until all of it has settled, or cannot any more. */
async function drive(
  stage: Stage, options: SampleOptions, screen: Screen, startedAt: number, signal: AbortSignal,
): Promise<{ readonly account: Account; readonly verdict: Verdict }> {
  const { broker, ledger, services, supervisor } = stage
  const ending = new AbortController()
  const cut = AbortSignal.any([signal, ending.signal])
  let isSent = false
  screen.say(`sending ${options.events} events, ${options.rate} a second, to ${options.endpoints.join(', ')}`)
  const sending = sendEvents({
    producer: broker.producer, topic: broker.eventsTopic, count: options.events, ratePerSecond: options.rate,
    onAcknowledged: ledger.acknowledged, signal: cut,
  }).then(() => { isSent = true })
  const killing = options.kill === null ? null : killAgainAndAgain(options.kill, supervisor, services, cut)
  const failed = Promise.race([stage.failed, sending.then(() => new Promise<never>(() => {}))])
  failed.catch(() => undefined)

  const settle = createSettling()
  let plainAt = performance.now()
  try {
    for (;;) {
      await Promise.race([delay(screen.isLive ? lookMs.live : lookMs.plain, undefined, { signal }), failed])
      const scene = await look(stage, options, startedAt)
      const { account, progress } = scene
      screen.show(drawScene(scene))
      if (!screen.isLive && performance.now() - plainAt >= plainLineMs) {
        plainAt = performance.now()
        screen.say(describeScene(scene))
      }
      const verdict = settle({
        now: performance.now(), isSent, missing: account.waiting, isIdle: progress.isIdle,
        seen: account.attempts + stage.deadLetters(),
      })
      if (verdict !== 'going-on') return { verdict, account: ledger.account(verdict !== 'stuck') }
    }
  } finally {
    ending.abort()
    await killing
  }
}

async function look({ received, ledger, services, broker, subscriptions, supervisor }: Stage, options: SampleOptions, startedAt: number): Promise<Scene> {
  const [progress] = await Promise.all([readProgress(services), received.read()])
  const known = broker.health()
  const health = new Map<string, Health>()
  for (const { endpoint, endpointKey } of subscriptions) {
    const found = known.get(endpointKey)
    if (found) health.set(endpoint, found)
  }
  return {
    elapsedMs: performance.now() - startedAt, events: options.events, account: ledger.account(false), progress, health,
    kills: options.kill === null ? null : { service: options.kill, count: supervisor.kills(options.kill) },
  }
}

function report(
  { ledger, broker, subscriptions, logFolder }: Stage, { account, isGood, verdict }: { account: Account; isGood: boolean; verdict: Verdict }, screen: Screen,
): void {
  screen.show([])
  const keyOf = new Map(subscriptions.map(({ endpoint, endpointKey }) => [endpoint, endpointKey]))
  const health = new Map([...keyOf].flatMap(([endpoint, key]) => {
    const found = broker.health().get(key)
    return found ? [[endpoint, found] as const] : []
  }))
  for (const line of ['', ...drawTable(account, health), '']) screen.say(line)
  screen.say(describeAccount(account, isGood))
  if (verdict === 'stuck') screen.say(`Some are still under way and do not come; the services' logs may say why: ${logFolder}`)
  if (ledger.altered() > 0) screen.say(`${ledger.altered()} deliveries came with other bytes than were sent, and are counted as missing.`)
}

/** Until the signal aborts: what happens is shown, or nothing where the screen is a pipe. */
async function stayUp(stage: Stage, options: SampleOptions, screen: Screen, startedAt: number, signal: AbortSignal): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  while (!signal.aborted) {
    if (screen.isLive) screen.show(drawScene(await look(stage, options, startedAt)))
    await Promise.race([delay(screen.isLive ? lookMs.live : 60_000, undefined, { ref: false }), ended, stage.failed])
  }
}

