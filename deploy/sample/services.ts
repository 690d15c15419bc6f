import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessSpec } from '../dev/kept-process.ts'
import { freePorts, isPortFree } from '../dev/kafka/ports.ts'
import { killable, type Killable } from './options.ts'
import { readMetrics, type MetricSample } from './metrics-text.ts'

/** posthouse's services as they run here, each a process of its own. */
export type SampleServices = {
  readonly specs: readonly ProcessSpec[]
  /** Where Prometheus would scrape. */
  readonly metricsUrls: Readonly<Record<Killable, string>>
  isReady(name: Killable): Promise<boolean>
  /** Resolves when all are ready; rejects after `deadlineMs`, saying what each still waits for. */
  waitReady(deadlineMs: number, signal: AbortSignal): Promise<void>
  /** null: it does not answer, as after a kill. */
  metricsOf(name: Killable): Promise<readonly MetricSample[] | null>
}

/** Taken when they are free, so that what one has noted down goes on to work. */
const usualPorts: Readonly<Record<Killable, number>> = { 'router': 9401, 'delivery': 9402, 'retry-tier': 9403 }
const answerDeadlineMs = 2_000
const pollMs = 100

/**
 * Chooses ports; starts nothing. `env` is added to this process's own. `takesUsualPorts`: of runs that start at the same moment only one
 * may, as each would find them free.
 */
export async function describeServices({ env, logFolder, takesUsualPorts }: {
  readonly env: Readonly<Record<string, string>>
  readonly logFolder: string
  readonly takesUsualPorts: boolean
}): Promise<SampleServices> {
  const free = await freePorts(killable.length)
  const ports = Object.fromEntries(await Promise.all(killable.map(async (name, index) =>
    [name, takesUsualPorts && (await isPortFree(usualPorts[name])) ? usualPorts[name] : free[index]] as const))) as Record<Killable, number>
  const urlOf = (name: Killable, path: string): string => `http://127.0.0.1:${ports[name]}${path}`
  const ask = (name: Killable, path: string): Promise<Response | null> =>
    fetch(urlOf(name, path), { signal: AbortSignal.timeout(answerDeadlineMs) }).catch(() => null)

  async function reasonToWait(name: Killable): Promise<string | null> {
    const response = await ask(name, '/readyz')
    if (response === null) return `${name} does not answer (its log: ${join(logFolder, `${name}.log`)})`
    const { waitingFor } = await response.json() as { readonly waitingFor: readonly string[] }
    return response.ok ? null : `${name} waits: ${waitingFor.join('; ')}`
  }

  return {
    specs: killable.map((name) => ({
      name, file: `services/${name}/main.ts`,
      env: { ...env, POSTHOUSE_HTTP_PORT: String(ports[name]), POSTHOUSE_HTTP_HOST: '127.0.0.1' },
    })),
    metricsUrls: { 'router': urlOf('router', '/metrics'), 'delivery': urlOf('delivery', '/metrics'), 'retry-tier': urlOf('retry-tier', '/metrics') },
    isReady: async (name) => (await ask(name, '/readyz'))?.ok ?? false,
    async waitReady(deadlineMs, signal) {
      const endsAt = performance.now() + deadlineMs
      for (;;) {
        const reasons = (await Promise.all(killable.map(reasonToWait))).filter((reason) => reason !== null)
        if (reasons.length === 0) return
        if (performance.now() >= endsAt) throw new Error(`the services were not ready within ${deadlineMs / 1_000} s: ${reasons.join('; ')}`)
        await delay(pollMs, undefined, { signal })
      }
    },
    async metricsOf(name) {
      const response = await ask(name, '/metrics')
      return response?.ok ? readMetrics(await response.text().catch(() => '')) : null
    },
  }
}
