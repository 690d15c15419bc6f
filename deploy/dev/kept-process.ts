import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from './folders.ts'
import { describeEnd, spawnLeashed, type Ended, type Leashed } from './leash.ts'

/** One Node process to keep running. */
export type ProcessSpec = {
  /** Unique: `delivery`, or `delivery-1` and `delivery-2` for two of a kind. */
  readonly name: string
  /** The file Node runs, from the project's root: `services/delivery/main.ts`. */
  readonly file: string
  readonly args?: readonly string[]
  /** Added to our own environment; wins. */
  readonly env?: Readonly<Record<string, string>>
}

export type ProcessEvent =
  | { readonly type: 'started'; readonly name: string; readonly pid: number }
  /** Ended unasked; starts again after `restartInMs`, or never (null) as its configuration is wrong. */
  | { readonly type: 'died'; readonly name: string; readonly end: string; readonly restartInMs: number | null }
  /** Killed on purpose, for the `kills`-th time. */
  | { readonly type: 'killed'; readonly name: string; readonly pid: number; readonly kills: number }
  /** Did not end within the time that `stop` gives, and was killed. */
  | { readonly type: 'stop-timed-out'; readonly name: string }

export type KeptProcessOptions = {
  /** Each line the process writes. */
  readonly onLine?: (name: string, line: string) => void
  /** An existing folder; the process's lines are also added to `<name>.log` there. */
  readonly logFolder?: string
  readonly onEvent?: (event: ProcessEvent) => void
  /** Between SIGTERM and SIGKILL in `stop()`: a service drains for up to 35 s. */
  readonly stopWaitMs: number
}

export type KeptProcess = {
  readonly name: string
  /** null between two lives. */
  pid(): number | null
  /** SIGKILL, and a new start at once. Does nothing between two lives. */
  kill(): void
  kills(): number
  /** SIGTERM, SIGKILL after `stopWaitMs`; never started again. May be called more than once. */
  stop(): Promise<void>
}

/** Exit code of a service whose configuration is wrong (EX_CONFIG of sysexits.h): starting it again changes nothing. */
const configurationExitCode = 78
const firstRestartMs = 200
const longestRestartMs = 10_000
/** One that lived as long begins again with the shortest wait. */
const healthyLifeMs = 30_000

/** Wait before the next start, after `deaths` short lives in a row (from 1), in ms. */
export function restartDelayMs(deaths: number): number {
  return Math.min(firstRestartMs * 2 ** (deaths - 1), longestRestartMs)
}

/**
 * Starts a process and keeps it running: when it dies it is started again, after longer and longer waits while it dies at once. Resolves
 * when it is started (not ready); rejects when it cannot be.
 */
export async function keepRunning(spec: ProcessSpec, { onLine, logFolder, onEvent, stopWaitMs }: KeptProcessOptions): Promise<KeptProcess> {
  const { name } = spec
  const log = logFolder === undefined ? null : createWriteStream(join(logFolder, `${name}.log`), { flags: 'a' })
  let starting: Promise<void>
  let running: Leashed | null = null
  let isBeingKilled = false
  let kills = 0
  let deaths = 0
  let restartTimer: NodeJS.Timeout | null = null
  let stopping: Promise<void> | null = null

  const start = async (): Promise<void> => {
    const startedAt = performance.now()
    isBeingKilled = false
    const started = await spawnLeashed({
      command: process.execPath,
      args: [join(projectRoot, spec.file), ...(spec.args ?? [])],
      cwd: projectRoot,
      env: { ...process.env, ...spec.env },
      graceMs: stopWaitMs,
      onLine: (line) => {
        log?.write(`${line}\n`)
        onLine?.(name, line)
      },
    })
    running = started
    onEvent?.({ type: 'started', name, pid: started.pid })
    void started.ended.then((end) => onEnded(end, performance.now() - startedAt))
  }

  const onEnded = (end: Ended, lifeMs: number): void => {
    running = null
    if (stopping) return
    if (isBeingKilled) return startAgain(0)
    deaths = lifeMs >= healthyLifeMs ? 1 : deaths + 1
    onDied(describeEnd(end), end.code === configurationExitCode)
  }

  const onDied = (end: string, isHopeless: boolean): void => {
    const restartInMs = isHopeless ? null : restartDelayMs(deaths)
    onEvent?.({ type: 'died', name, end, restartInMs })
    if (restartInMs !== null) startAgain(restartInMs)
  }

  const startAgain = (delayMs: number): void => {
    restartTimer = setTimeout(() => {
      starting = start().catch((error: unknown) => {
        deaths++
        if (!stopping) onDied((error as Error).message, false)
      })
    }, delayMs)
  }

  const stopNow = async (): Promise<void> => {
    if (restartTimer) clearTimeout(restartTimer)
    await starting
    const end = await running?.terminate(stopWaitMs)
    if (end?.signal === 'SIGKILL' && !isBeingKilled) onEvent?.({ type: 'stop-timed-out', name })
    await new Promise<void>((resolve) => log ? log.end(resolve) : resolve())
  }

  starting = start()
  await starting
  return {
    name,
    pid: () => running?.pid ?? null,
    kill: () => {
      if (!running || isBeingKilled || stopping) return
      isBeingKilled = true
      kills++
      running.signal('SIGKILL')
      onEvent?.({ type: 'killed', name, pid: running.pid, kills })
    },
    kills: () => kills,
    stop: () => (stopping ??= stopNow()),
  }
}
