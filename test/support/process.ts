import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { freePorts } from '../../deploy/dev/kafka/ports.ts'
import { describeEnd, spawnLeashed, type Ended } from '../../deploy/dev/leash.ts'
import { until } from './until.ts'

export type LogLine = {
  readonly text: string
  /** The line's object where it is JSON, as all of a service's are; null otherwise. */
  readonly fields: Readonly<Record<string, unknown>> | null
  readonly stream: 'stdout' | 'stderr'
}

export type ServiceProcess = {
  readonly pid: number
  /** Of its HTTP server. */
  readonly port: number
  /** `http://127.0.0.1:port`, with no slash at the end. */
  readonly url: string
  readonly lines: readonly LogLine[]
  readonly ended: Promise<Ended>
  /** Resolves once GET /readyz answers 200; rejects with its last lines when it ends before. */
  waitReady(deadlineMs?: number): Promise<void>
  /** Resolves with the first line, written already or yet to come, that the pattern matches. */
  waitForLine(pattern: RegExp, deadlineMs?: number): Promise<LogLine>
  /** SIGTERM; resolves when it has ended. Killed, and so `signal: 'SIGKILL'`, when that takes over `deadlineMs`. */
  terminate(deadlineMs?: number): Promise<Ended>
  /** SIGKILL; resolves when it has ended. */
  kill(): Promise<Ended>
}

export type ServiceOptions = {
  /** From the project's root: `services/router/main.ts`. */
  readonly file: string
  readonly args?: readonly string[]
  /** Added to the environment of the test; wins. POSTHOUSE_HTTP_PORT is set unless it is here. */
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a service as a process of its own, killed when the test ends. Resolves when it is started, not yet ready. */
export async function startService(t: Pick<TestContext, 'after'>, { file, args = [], env = {} }: ServiceOptions): Promise<ServiceProcess> {
  const [freePort] = await freePorts(1)
  const port = Number(env['POSTHOUSE_HTTP_PORT'] ?? freePort)
  const lines: LogLine[] = []
  const child = await spawnLeashed({
    command: process.execPath,
    args: [join(projectRoot, file), ...args],
    cwd: projectRoot,
    // Without this variable of the test runner, which would make a child report to it.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, POSTHOUSE_HTTP_PORT: String(port), ...env },
    graceMs: 1_000,
    onLine: (text, stream) => lines.push({ text, stream, fields: parseFields(text) }),
  })
  const kill = (): Promise<Ended> => {
    child.signal('SIGKILL')
    return child.ended
  }
  t.after(kill)

  const url = `http://127.0.0.1:${port}`
  const lastLines = () => lines.slice(-20).map(({ text }) => text).join('\n')
  const failWhenEnded = async (): Promise<void> => {
    if (!child.hasEnded()) return
    throw new Error(`${file} ended with ${describeEnd(await child.ended)}. Its last lines:\n${lastLines()}`)
  }
  return {
    pid: child.pid, port, url, lines, ended: child.ended, kill,
    waitReady: async (deadlineMs = 30_000) => {
      const isReady = async (): Promise<boolean> => {
        await failWhenEnded()
        return fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) }).then(({ status }) => status === 200, () => false)
      }
      await until(isReady, { deadlineMs, intervalMs: 50, message: () => `${file} to be ready. Its last lines:\n${lastLines()}` })
    },
    waitForLine: (pattern, deadlineMs = 10_000) => until(async () => {
      const line = lines.find(({ text }) => pattern.test(text))
      if (!line) await failWhenEnded()
      return line
    }, { deadlineMs, message: () => `a line of ${file} like ${pattern}. Its last lines:\n${lastLines()}` }),
    terminate: (deadlineMs = 40_000) => child.terminate(deadlineMs),
  }
}

function parseFields(text: string): LogLine['fields'] {
  if (!text.startsWith('{')) return null
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return null
  }
}
