import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { identify, isAlive, type ProcessIdentity } from '../process-identity.ts'

/**
 * The folder of one local broker:
 *   data/               Kafka's log.dirs; there only when it was formatted whole
 *   server.properties   of the last start
 *   ports.json          of the last start, taken again where they are free, so that clients find a restarted broker
 *   broker.json         the process that uses the folder
 */
export type DataFolder = {
  readonly path: string
  readonly data: string
  readonly propertiesFile: string
}

export function dataFolder(path: string): DataFolder {
  return { path, data: join(path, 'data'), propertiesFile: join(path, 'server.properties') }
}

/** Long enough for a broker whose starter was just killed to end (see `brokerGraceMs`). */
const waitForLastMs = 15_000

/** Waits for the last broker in this folder to end, as it does when its starter was killed; throws when one keeps running there. */
export async function waitUntilUnused({ path }: DataFolder): Promise<void> {
  const endsAt = performance.now() + waitForLastMs
  for (;;) {
    const broker = await readJson<ProcessIdentity>(join(path, 'broker.json'))
    if (!broker || !isAlive(broker)) return
    if (performance.now() >= endsAt) {
      throw new Error(`a Kafka runs already in ${path} (process ${broker.pid}): stop it, or name another folder`)
    }
    await delay(50)
  }
}

export async function recordBroker({ path }: DataFolder, pid: number): Promise<void> {
  await writeFile(join(path, 'broker.json'), JSON.stringify(identify(pid)))
}

export type SavedPorts = { readonly brokerPort: number; readonly controllerPort: number }

export function readPorts({ path }: DataFolder): Promise<SavedPorts | null> {
  return readJson<SavedPorts>(join(path, 'ports.json'))
}

export async function savePorts({ path }: DataFolder, ports: SavedPorts): Promise<void> {
  await writeFile(join(path, 'ports.json'), JSON.stringify(ports))
}

/** Forgets the data (only what a broker wrote, never the whole folder: its name came from a user). */
export async function emptyDataFolder({ data }: DataFolder): Promise<void> {
  await rm(data, { recursive: true, force: true })
}

/**
 * Formats the data folder unless it is: `format` writes into the folder it is given, which takes its place only when it returned, so
 * that one interrupted on the way is formatted again.
 */
export async function ensureFormatted({ path, data }: DataFolder, format: (into: string, clusterId: string) => Promise<void>): Promise<void> {
  if (existsSync(join(data, 'meta.properties'))) return
  const partial = join(path, `data.partial-${process.pid}`)
  await rm(partial, { recursive: true, force: true })
  await mkdir(partial, { recursive: true })
  try {
    await format(partial, newClusterId())
    await rm(data, { recursive: true, force: true })
    await rename(partial, data)
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

/** 16 random bytes in base64url; never with a leading `-`, which Kafka's tools would take for an option (nor does Kafka make such ones). */
export function newClusterId(bytes = randomBytes(16)): string {
  const [first = 0, ...others] = bytes
  return Buffer.from([first & 0x7f, ...others]).toString('base64url')
}

async function readJson<Value>(file: string): Promise<Value | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Value
  } catch (error) {
    // Cut short by a kill: as good as none, since it only saves a choice.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
