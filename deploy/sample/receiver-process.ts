import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { newSecret } from '../../shared/domain/ids.ts'
import { freePorts, isListening } from '../dev/kafka/ports.ts'
import { startSupervisor, type SupervisorOptions } from '../dev/supervisor.ts'
import type { Wanted } from './broker-side.ts'
import type { EndpointName } from './endpoints.ts'
import type { Sabotage } from './options.ts'
import type { ReceiverConfiguration } from './receiver.ts'

export type ReceiverProcess = {
  /** One a subscription is to be made of. */
  readonly wanted: readonly Wanted[]
  readonly logFile: string
  stop(): Promise<void>
}

const readyDeadlineMs = 20_000

/** Starts the receiver and resolves when it listens. `folder` exists; an earlier run's log there is removed. */
export async function startReceiver({ folder, endpoints, sabotage, signal, ...supervised }: {
  readonly folder: string
  readonly endpoints: readonly EndpointName[]
  readonly sabotage: Sabotage | null
  readonly signal: AbortSignal
} & Pick<SupervisorOptions, 'logFolder' | 'onEvent'>): Promise<ReceiverProcess> {
  const [port = 0] = await freePorts(1)
  const secrets = Object.fromEntries(endpoints.map((name) => [name, newSecret()])) as Record<EndpointName, string>
  const logFile = join(folder, 'received.jsonl')
  const configurationFile = join(folder, 'receiver.json')
  const configuration: ReceiverConfiguration = {
    port, logFile, hidesOne: sabotage === 'log',
    secrets: sabotage === 'secret' ? { ...secrets, [endpoints[0]!]: newSecret() } : secrets,
  }
  await writeFile(logFile, '')
  await rm(configurationFile, { force: true })
  await writeFile(configurationFile, JSON.stringify(configuration), { mode: 0o600 })
  const supervisor = await startSupervisor({
    ...supervised, stopWaitMs: 3_000, processes: [{ name: 'receiver', file: 'deploy/sample/receiver.ts', args: [configurationFile] }],
  })
  try {
    const endsAt = performance.now() + readyDeadlineMs
    while (!(await isListening(port))) {
      if (performance.now() >= endsAt) throw new Error(`the receiver did not listen on port ${port} within ${readyDeadlineMs / 1_000} s: its log says more`)
      await delay(50, undefined, { signal })
    }
  } catch (error) {
    await supervisor.stop()
    throw error
  }
  return {
    logFile, stop: supervisor.stop,
    wanted: endpoints.map((endpoint) => ({ endpoint, url: `http://127.0.0.1:${port}/${endpoint}`, secret: secrets[endpoint] })),
  }
}
