import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { stringify } from 'yaml'
import { freePorts } from '../dev/kafka/ports.ts'
import { describeEnd, spawnLeashed } from '../dev/leash.ts'

/** An alert as Prometheus tells of it. */
export type ActiveAlert = {
  readonly name: string
  readonly state: 'pending' | 'firing'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly value: number
}

export type Prometheus = {
  /** `http://127.0.0.1:port`, with no slash at the end. */
  readonly url: string
  /** Resolves when every target was scraped and answered. */
  waitScraped(deadlineMs: number, signal?: AbortSignal): Promise<void>
  alerts(): Promise<readonly ActiveAlert[]>
  /** The present value of an expression, summed over its series; null where there is none. */
  value(expression: string): Promise<number | null>
  stop(): Promise<void>
}

export type PrometheusOptions = {
  /** `host:port` of what is scraped, all as one job. */
  readonly targets: readonly string[]
  readonly rulesFile: string
  /** Takes the configuration and the data. */
  readonly folder: string
  /** Between two scrapes, and between two looks at the rules, ms. */
  readonly intervalMs: number
  readonly onLine: (line: string) => void
}

const readyDeadlineMs = 30_000
const pollMs = 100

/**
 * Starts the Prometheus of this machine, which ends with this process. Resolves when it answers.
 * @throws when the program is not there, or refuses the rules
 */
export async function startPrometheus({ targets, rulesFile, folder, intervalMs, onLine }: PrometheusOptions): Promise<Prometheus> {
  await mkdir(folder, { recursive: true })
  const configFile = join(folder, 'prometheus.yml')
  const interval = `${intervalMs}ms`
  await writeFile(configFile, stringify({
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: [rulesFile],
    scrape_configs: [{ job_name: 'posthouse', static_configs: [{ targets }] }],
  }))
  const [port] = await freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const lines: string[] = []
  const child = await spawnLeashed({
    command: 'prometheus', graceMs: 2_000,
    args: [`--config.file=${configFile}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'],
    onLine: (line) => {
      lines.push(line)
      onLine(line)
    },
  })
  const stop = async (): Promise<void> => void await child.terminate(5_000)

  async function ask<Data>(path: string): Promise<Data> {
    const response = await fetch(`${url}/api/v1/${path}`, { signal: AbortSignal.timeout(10_000) })
    const { status, data, error } = await response.json() as { status: string; data: Data; error?: string }
    if (status !== 'success') throw new Error(`Prometheus would not answer ${path}: ${error}`)
    return data
  }

  async function waitFor(condition: () => Promise<boolean>, deadlineMs: number, what: () => string, signal?: AbortSignal): Promise<void> {
    const endsAt = performance.now() + deadlineMs
    while (!await condition()) {
      // 127: the shell found no such program.
      if (child.hasEnded()) {
        const end = await child.ended
        throw new Error(end.code === 127 ? 'prometheus is not installed (Debian: apt-get install prometheus)'
          : `Prometheus ended with ${describeEnd(end)}: ${lines.slice(-5).join('\n')}`)
      }
      if (performance.now() >= endsAt) throw new Error(`waited ${deadlineMs / 1_000} s in vain for ${what()}`)
      await delay(pollMs, undefined, { signal })
    }
  }

  type Target = { readonly scrapeUrl: string; readonly health: string; readonly lastError: string }
  const targetsNow = async (): Promise<readonly Target[]> => (await ask<{ activeTargets: readonly Target[] }>('targets')).activeTargets

  try {
    await waitFor(() => fetch(`${url}/-/ready`).then(({ ok }) => ok, () => false), readyDeadlineMs, () => 'Prometheus to answer')
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url, stop,
    async waitScraped(deadlineMs, signal) {
      let seen: readonly Target[] = []
      await waitFor(async () => {
        seen = await targetsNow()
        return seen.length === targets.length && seen.every(({ health }) => health === 'up')
      }, deadlineMs, () => `all targets to be up: ${seen.map(({ scrapeUrl, health, lastError }) => `${scrapeUrl} ${health} ${lastError}`).join('; ')}`, signal)
    },
    async alerts() {
      type Raw = { readonly labels: Record<string, string>; readonly annotations: Record<string, string>; readonly state: 'pending' | 'firing'; readonly value: string }
      const { alerts } = await ask<{ alerts: readonly Raw[] }>('alerts')
      return alerts.map(({ labels, annotations, state, value }) => ({ name: labels['alertname'] ?? '', state, labels, annotations, value: Number(value) }))
    },
    async value(expression) {
      const { result } = await ask<{ result: readonly { readonly value: readonly [number, string] }[] }>(`query?query=${encodeURIComponent(expression)}`)
      return result.length === 0 ? null : result.reduce((sum, { value }) => sum + Number(value[1]), 0)
    },
  }
}
