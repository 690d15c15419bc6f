import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/**
 * A process that ends with the one that started it, even when that one is killed with -9 and can do nothing any more.
 * File descriptor 3 is a pipe whose other end only we hold. A watcher reads it: a line means "it has ended, leave", the pipe's end
 * means that we are gone. The process itself is `exec`ed, so the pid, the exit code and the signals are its own.
 */
const leashScript = `
grace=$1; shift
(
  trap '' INT HUP
  if read -r _ <&3; then exit; fi
  kill -TERM $$
  while [ "$grace" -gt 0 ] && kill -0 $$; do sleep 0.1; grace=$((grace - 1)); done
  kill -KILL $$
) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&-
`

export type LeashedOptions = {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd?: string
  /** The whole environment of the process. Default: ours. */
  readonly env?: NodeJS.ProcessEnv
  /** Between SIGTERM and SIGKILL, once we are gone. */
  readonly graceMs: number
  /** Each line of its standard output and error, in order within either; `inherit` writes both straight to ours. */
  readonly onLine: ((line: string, stream: 'stdout' | 'stderr') => void) | 'inherit'
}

/** How a process ended. */
export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export type Leashed = {
  readonly pid: number
  /** Resolves when it has ended and all of its output was read. */
  readonly ended: Promise<Ended>
  hasEnded(): boolean
  signal(signal: NodeJS.Signals): void
  /** SIGTERM, and SIGKILL when it is not gone `waitMs` later. Resolves when it has ended; may be called more than once. */
  terminate(waitMs: number): Promise<Ended>
}

/**
 * Starts a process on a leash, in a session of its own: a terminal's Ctrl-C reaches us only, and we stop what we started in order.
 * Rejects when the command cannot be started at all. Needs a POSIX `sh`.
 */
export async function spawnLeashed({ command, args, cwd, env, graceMs, onLine }: LeashedOptions): Promise<Leashed> {
  const grace = String(Math.ceil(graceMs / 100))
  const output = onLine === 'inherit' ? 'inherit' : 'pipe'
  const child = spawn('/bin/sh', ['-c', leashScript, 'leash', grace, command, ...args], {
    detached: true, stdio: ['ignore', output, output, 'pipe'], env: env ?? process.env, ...(cwd === undefined ? {} : { cwd }),
  })
  const ended = endOf(child)
  const leash = child.stdio[3] as Writable
  // The watcher may be gone first, killed with the whole group: then there is nobody to tell.
  leash.on('error', () => undefined)
  child.once('exit', () => leash.end('ended\n'))
  if (onLine !== 'inherit') {
    for (const name of ['stdout', 'stderr'] as const) {
      createInterface({ input: child[name] as Readable }).on('line', (line) => onLine(line, name))
    }
  }
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (cause) => reject(new Error(`${command} could not be started: ${cause.message}`, { cause })))
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${command} was started and has no process id`)

  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  return {
    pid,
    ended,
    hasEnded,
    signal: (signal) => void child.kill(signal),
    terminate: async (waitMs) => {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), waitMs)
      try {
        return await ended
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

function endOf(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })))
}

/** `exit code 1`, `SIGKILL`: for messages. */
export function describeEnd({ code, signal }: Ended): string {
  return signal ?? `exit code ${code}`
}
