import { mkdir } from 'node:fs/promises'
import { keepRunning, type KeptProcess, type ProcessEvent, type ProcessSpec } from './kept-process.ts'

export type SupervisorOptions = {
  readonly processes: readonly ProcessSpec[]
  /** Each line a process writes. */
  readonly onLine?: (name: string, line: string) => void
  /** Each process's lines are also added to `<name>.log` here; the folder is made. */
  readonly logFolder?: string
  readonly onEvent?: (event: ProcessEvent) => void
  /** Between SIGTERM and SIGKILL in `stop()`; default 40 s, as a service drains for up to 35 s. */
  readonly stopWaitMs?: number
}

export type Supervisor = {
  /** The process that runs under this name now, or null between two lives. */
  pidOf(name: string): number | null
  /** Kills (-9) a process of this kind, of several the next in turn, and starts it again at once. Throws when there is none of that kind. */
  kill(name: string): void
  /**
   * Kills (-9) a process of this kind every `intervalMs`, and starts it again at once: the name itself, or `<name>-1`, `<name>-2` ...
   * in turn. Returns what ends it. Throws when there is none of that kind.
   */
  killEvery(name: string, intervalMs: number): () => void
  /** How often processes of this kind were killed so. */
  kills(name: string): number
  /** Stops all at once and resolves when all have ended. May be called more than once. */
  stop(): Promise<void>
}

const defaultStopWaitMs = 40_000

/**
 * Starts Node processes and keeps them running. They end with this process, however that ends. Resolves when all are started (not
 * ready); when one cannot be started the others are stopped, and it rejects.
 */
export async function startSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const { processes, logFolder, stopWaitMs = defaultStopWaitMs, ...rest } = options
  if (logFolder !== undefined) await mkdir(logFolder, { recursive: true })
  const settings = { ...rest, stopWaitMs, ...(logFolder === undefined ? {} : { logFolder }) }
  const kept = await startAll(processes, (spec) => keepRunning(spec, settings))
  const killTimers = new Set<NodeJS.Timeout>()
  let stopping: Promise<void> | null = null

  const turns = new Map<string, number>()

  const ofKind = (kind: string): KeptProcess[] => kept.filter(({ name }) => isOfKind(name, kind))

  function kindToKill(name: string): readonly KeptProcess[] {
    const kind = ofKind(name)
    if (kind.length > 0) return kind
    throw new Error(`there is no process ${name} to kill: name one of ${kept.map((one) => one.name).join(', ')}`)
  }

  function kill(name: string): void {
    const kind = kindToKill(name)
    const turn = turns.get(name) ?? 0
    turns.set(name, turn + 1)
    kind[turn % kind.length]!.kill()
  }

  return {
    pidOf: (name) => kept.find((one) => one.name === name)?.pid() ?? null,
    kill,
    killEvery: (name, intervalMs) => {
      kindToKill(name)
      const timer = setInterval(() => kill(name), intervalMs)
      killTimers.add(timer)
      return () => {
        clearInterval(timer)
        killTimers.delete(timer)
      }
    },
    kills: (name) => ofKind(name).reduce((sum, one) => sum + one.kills(), 0),
    stop: () => (stopping ??= (async () => {
      for (const timer of killTimers) clearInterval(timer)
      await Promise.all(kept.map((one) => one.stop()))
    })()),
  }
}

/** `delivery-2` is of the kind `delivery`. */
function isOfKind(name: string, kind: string): boolean {
  return name === kind || (name.startsWith(`${kind}-`) && /^\d+$/.test(name.slice(kind.length + 1)))
}

async function startAll(specs: readonly ProcessSpec[], start: (spec: ProcessSpec) => Promise<KeptProcess>): Promise<KeptProcess[]> {
  const results = await Promise.allSettled(specs.map(start))
  const started = results.flatMap((result) => result.status === 'fulfilled' ? [result.value] : [])
  const failed = results.find((result) => result.status === 'rejected')
  if (!failed) return started
  await Promise.all(started.map((one) => one.stop()))
  throw failed.reason instanceof Error ? failed.reason : new Error(String(failed.reason))
}
