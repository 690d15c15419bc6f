import { readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stateFolder } from './folders.ts'
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts'

/** Tells other commands of this project, such as the CLI, where the local Kafka listens. */
export const runFile = join(stateFolder, 'run.json')

/** The local Kafka of this project. */
export type LocalRun = {
  /** Of the broker. */
  readonly pid: number
  /** As KAFKA_BROKERS. */
  readonly brokers: string
  /** Epoch ms. */
  readonly startedAt: number
  /** POSTHOUSE_* names the services of this run were started with; the CLI takes them as its defaults. Nothing secret belongs here. */
  readonly environment?: Readonly<Record<string, string>>
}

type Written = LocalRun & Pick<ProcessIdentity, 'startTicks'>

/** Says that a local Kafka runs. Resolves to what takes it back at the end, unless a later run has written over it. */
export async function writeRunFile(run: Omit<LocalRun, 'startedAt'>, file = runFile): Promise<() => Promise<void>> {
  const { pid, startTicks } = identify(run.pid)
  const written: Written = { ...run, pid, startTicks, startedAt: Date.now() }
  await mkdir(dirname(file), { recursive: true })
  const partial = `${file}.${process.pid}`
  await writeFile(partial, `${JSON.stringify(written)}\n`)
  await rename(partial, file)
  return async () => {
    const now = readRunFile(file)
    if (now?.pid === pid && now.startTicks === startTicks) await rm(file, { force: true })
  }
}

/** The local Kafka that runs now, or null. A file that was left behind by a killed run is not believed: its process is gone. */
export function findLocalKafka(file = runFile): LocalRun | null {
  const run = readRunFile(file)
  if (!run || !isAlive(run)) return null
  const { startTicks: _, ...local } = run
  return local
}

function readRunFile(file: string): Written | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    return JSON.parse(text) as Written
  } catch (cause) {
    throw new Error(`${file} is not what a local run writes: delete it`, { cause })
  }
}
