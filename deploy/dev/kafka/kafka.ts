import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createKafka } from '../../../shared/kafka/client.ts'
import { withFileLock } from '../file-lock.ts'
import { describeEnd, spawnLeashed, type Ended, type Leashed } from '../leash.ts'
import {
  dataFolder, emptyDataFolder, ensureFormatted, readPorts, recordBroker, savePorts, waitUntilUnused, type DataFolder,
} from './data-folder.ts'
import { kafkaJars, type ProgressStream } from './jars.ts'
import { freePorts, isListening, isPortFree } from './ports.ts'
import { serverProperties, type BrokerListeners } from './server-properties.ts'
import { javaCommand, requireJava } from './tools.ts'

export type LocalKafkaOptions = {
  /** Keeps the data and what belongs to it; made when it is not there. One broker at a time. */
  readonly folder: string
  /** Begin with no topics. Default: go on with what is in the folder. */
  readonly fresh?: boolean
  /** Of the broker. Default: the one of the last start in this folder when it is free, else any that is. */
  readonly port?: number
  /** Added to server.properties; they win. */
  readonly properties?: Readonly<Record<string, string>>
  /** Each line that Kafka logs: warnings and errors. */
  readonly onLog?: (line: string) => void
  /** Where the first fetch of Kafka's jars is told; default stderr. */
  readonly progress?: ProgressStream
}

export type LocalKafka = {
  /** `127.0.0.1:port`. */
  readonly brokers: string
  readonly port: number
  /** Of the Java process. */
  readonly pid: number
  /** Resolves when it has ended, asked to or not. */
  readonly ended: Promise<Ended>
  /** Ends it in order: SIGTERM, SIGKILL when it hangs. May be called more than once. */
  stop(): Promise<void>
  /** As a crash would: SIGKILL. */
  kill(): Promise<void>
}

/** Between SIGTERM and SIGKILL; it takes under 1 s. */
const brokerGraceMs = 10_000
/** After a kill, a broker that is back within its session is fenced for up to 23 s. */
const readyDeadlineMs = 60_000
/** Somebody else may take a port between our finding it free and Kafka's listening there. */
const startsWhenPortsAreTaken = 3

/**
 * Starts an Apache Kafka for this machine alone: one node, loopback, plain text, 256 MB of heap. Resolves when it serves (about 2.5 s;
 * a first start fetches Kafka itself). It ends with this process, however that ends.
 * Throws a MissingToolError without Java 17, and an Error that holds Kafka's last words when it does not start.
 */
export async function startLocalKafka(options: LocalKafkaOptions): Promise<LocalKafka> {
  await requireJava()
  const libs = await kafkaJars(options.progress ? { progress: options.progress } : {})
  const folder = dataFolder(options.folder)
  await mkdir(folder.path, { recursive: true })
  // Two starters in one folder: the second waits here for the first, and is then told that its broker runs.
  return withFileLock(join(folder.path, 'start.lock'), () => startInFolder(libs, folder, options))
}

async function startInFolder(libs: string, folder: DataFolder, { fresh, port, properties = {}, onLog }: LocalKafkaOptions): Promise<LocalKafka> {
  await waitUntilUnused(folder)
  if (fresh) await emptyDataFolder(folder)
  for (let start = 1; ; start++) {
    const listeners = await chooseListeners(folder, port)
    await ensureFormatted(folder, (into, clusterId) => format(libs, into, clusterId, serverProperties(listeners, into, properties)))
    await writeFile(folder.propertiesFile, serverProperties(listeners, folder.data, properties))
    try {
      return await startBroker(libs, folder, listeners, onLog)
    } catch (error) {
      const isPortTaken = (error as Error).message.includes('Address already in use')
      if (!isPortTaken || port !== undefined || start === startsWhenPortsAreTaken) throw error
    }
  }
}

async function chooseListeners(folder: DataFolder, asked: number | undefined): Promise<BrokerListeners> {
  const last = await readPorts(folder)
  const [freeForBroker, freeForController] = await freePorts(2)
  if (freeForBroker === undefined || freeForController === undefined) throw new Error('no free ports were found on 127.0.0.1')
  const brokerPort = asked ?? (last && await isPortFree(last.brokerPort) ? last.brokerPort : freeForBroker)
  if (asked !== undefined && !(await isPortFree(asked))) {
    throw new Error(`Kafka cannot listen on 127.0.0.1:${asked}: something else does (Address already in use); stop it or name another port`)
  }
  const listeners = { brokerPort, controllerPort: last && await isPortFree(last.controllerPort) ? last.controllerPort : freeForController }
  await savePorts(folder, listeners)
  return listeners
}

function java(libs: string, main: string, args: readonly string[], cwd: string, onLine: (line: string) => void): Promise<Leashed> {
  const limits = ['-Xms64m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:MaxMetaspaceSize=160m']
  const logging = `-Dlog4j2.configurationFile=${join(import.meta.dirname, 'log4j2.properties')}`
  return spawnLeashed({
    command: javaCommand(),
    args: [...limits, '-Djava.awt.headless=true', logging, '-cp', join(libs, '*'), main, ...args],
    cwd, graceMs: brokerGraceMs, onLine,
  })
}

async function format(libs: string, into: string, clusterId: string, properties: string): Promise<void> {
  const file = join(into, '..', 'format.properties')
  await writeFile(file, properties)
  const words = lastWords()
  const tool = await java(libs, 'kafka.tools.StorageTool', ['format', '-t', clusterId, '-c', file], into, words.add)
  const ended = await tool.ended
  await rm(file)
  if (ended.code !== 0) throw new Error(`Kafka could not format ${into} (${describeEnd(ended)}):\n${words.text()}`)
}

async function startBroker(
  libs: string, folder: DataFolder, { brokerPort }: BrokerListeners, onLog: ((line: string) => void) | undefined,
): Promise<LocalKafka> {
  const words = lastWords()
  const broker = await java(libs, 'kafka.Kafka', [folder.propertiesFile], folder.path, (line) => {
    words.add(line)
    onLog?.(line)
  })
  await recordBroker(folder, broker.pid)
  const brokers = `127.0.0.1:${brokerPort}`
  const stop = async (): Promise<void> => void await broker.terminate(brokerGraceMs)
  const endsAt = performance.now() + readyDeadlineMs
  while (!(await isServing(brokers, brokerPort))) {
    if (!broker.hasEnded() && performance.now() < endsAt) {
      await delay(50)
      continue
    }
    const what = broker.hasEnded() ? `ended at once with ${describeEnd(await broker.ended)}` : `did not serve within ${readyDeadlineMs} ms`
    await stop()
    throw new Error(`Kafka ${what} (folder ${folder.path}). Its last lines:\n${words.text()}`)
  }
  return {
    brokers, port: brokerPort, pid: broker.pid, ended: broker.ended, stop,
    kill: async () => {
      broker.signal('SIGKILL')
      await broker.ended
    },
  }
}

/** The last lines of a Java program that say something: without the frames of stack traces, which would push them out. */
function lastWords(): { readonly add: (line: string) => void; readonly text: () => string } {
  const lines: string[] = []
  return {
    add: (line) => {
      if (!line.startsWith('\tat ') && lines.push(line) > 30) lines.shift()
    },
    text: () => lines.join('\n'),
  }
}

/** Listens, and is itself among the brokers it names: one that is fenced after a crash is not. */
async function isServing(brokers: string, port: number): Promise<boolean> {
  if (!(await isListening(port))) return false
  const admin = createKafka({ brokers: [brokers], clientId: 'posthouse-dev', ssl: false, sasl: null, log: () => undefined })
    .admin({ retry: { retries: 0 } })
  try {
    await admin.connect()
    const cluster = await admin.describeCluster()
    return cluster.brokers.some((broker) => broker.port === port)
  } catch {
    // Not yet: whatever it is, the caller's deadline and Kafka's own log lines tell it better.
    return false
  } finally {
    await admin.disconnect()
  }
}
