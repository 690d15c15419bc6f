import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../../shared/config/config.ts'
import { createClosers } from '../../shared/lifecycle/closers.ts'
import { findLocalKafka, writeRunFile } from '../dev/run-file.ts'
import { startSupervisor, type Supervisor } from '../dev/supervisor.ts'
import type { ProcessEvent } from '../dev/kept-process.ts'
import { createLedger, type Ledger } from './account.ts'
import { openBrokerSide, type BrokerSide, type Made } from './broker-side.ts'
import { openCluster } from './cluster.ts'
import { sampleEnvironment } from './environment.ts'
import { killable, type SampleOptions } from './options.ts'
import { takeFolder } from './owner.ts'
import { startReceiver } from './receiver-process.ts'
import { openReceivedLog, type ReceivedLog } from './received-log.ts'
import { describeServices, type SampleServices } from './services.ts'
import { troubleOf } from './trouble.ts'

/** Everything that runs, ready for events. */
export type Stage = {
  readonly broker: BrokerSide
  readonly services: SampleServices
  readonly supervisor: Supervisor
  readonly received: ReceivedLog
  readonly ledger: Ledger
  readonly subscriptions: readonly Made[]
  /** What makes a command, or a service more, one of this installation. */
  readonly environment: Readonly<Record<string, string>>
  readonly logFolder: string
  /** Rejects when something has ended that the run cannot do without. */
  readonly failed: Promise<never>
  /** Dead letters read back so far. */
  deadLetters(): number
  /** Ends everything in order, last started first. */
  close(): Promise<void>
}

const readyDeadlineMs = 60_000
const stopWaitMs = 10_000

/** Starts Kafka, the receiver and the services, makes topics and subscriptions. What was started is ended again when it fails. */
export async function setStage({ options, folder, say, signal }: {
  readonly options: SampleOptions
  /** Holds all of it: `sample` the data, `logs` what the processes write. */
  readonly folder: string
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}): Promise<Stage> {
  const closers = createClosers()
  const data = join(folder, 'sample')
  const logFolder = join(folder, 'logs')
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)

  const lastTroubles = new Map<string, string>()
  const onLine = (name: string, line: string): void => {
    const trouble = troubleOf(line)
    if (trouble !== null) lastTroubles.set(name, trouble)
  }
  const onEvent = (event: ProcessEvent): void => {
    const log = `${lastTroubles.get(event.name) ?? 'no reason given'}; its log: ${join(logFolder, `${event.name}.log`)}`
    if (event.type === 'killed') say(`${event.name} was killed (kill -9, number ${event.kills})`)
    else if (event.type === 'stop-timed-out') say(`${event.name} did not end in time and was killed; ${log}`)
    else if (event.type === 'died' && event.restartInMs !== null) say(`${event.name} died (${event.end}) and is started again; ${log}`)
    else if (event.type === 'died') failure.reject(new Error(`${event.name} cannot run (${event.end}); ${log}`))
  }

  try {
    await Promise.all([data, logFolder].map((path) => mkdir(path, { recursive: true })))
    closers.add('the folder', await takeFolder(data))
    await Promise.all([...killable, 'receiver', 'kafka', 'sample'].map((name) => rm(join(logFolder, `${name}.log`), { force: true })))

    const writeTo = (name: string): ((line: string) => void) => {
      const file = createWriteStream(join(logFolder, `${name}.log`), { flags: 'a' })
      closers.add(`the log of ${name}`, () => new Promise((resolve) => { file.end(resolve) }))
      return (line) => void file.write(`${line}\n`)
    }
    const ownLog = writeTo('sample')
    const cluster = await openCluster(data, writeTo('kafka'))
    closers.add('Kafka', cluster.close)
    cluster.failed.catch(failure.reject)
    signal.throwIfAborted()
    say(cluster.pid === null ? `Kafka: ${cluster.brokers} (KAFKA_BROKERS), topics ${cluster.topicPrefix}*` : `Kafka: ${cluster.brokers}, started for this run`)

    const environment = sampleEnvironment(cluster)
    const env = { ...environment, KAFKA_BROKERS: cluster.brokers }
    const read = readConfig({ ...process.env, ...env })
    if ('problems' in read) throw new Error(`the environment does not go with the sample: ${read.problems.join('; ')}`)

    // A run of one's own that stays up is what the commands are to find; one that ends by itself must not push it aside.
    if (cluster.pid !== null && (!options.isOnce || findLocalKafka(join(folder, 'run.json')) === null)) {
      closers.add('the run file', await writeRunFile({ pid: cluster.pid, brokers: cluster.brokers, environment }, join(folder, 'run.json')))
    }

    let deadLetters = 0
    let ledger: Ledger | null = null
    const broker = await openBrokerSide({
      config: read.config, deletesTopics: cluster.pid === null, onFailed: failure.reject,
      log: (level, message, fields) => ownLog(JSON.stringify({ level, time: new Date(), msg: message, ...fields })),
      onDeadLetter: (id) => {
        deadLetters += 1
        ledger?.died(id)
      },
    })
    closers.add('the clients of Kafka', broker.close)
    signal.throwIfAborted()

    const receiver = await startReceiver({ folder: data, endpoints: options.endpoints, sabotage: options.sabotage, signal, logFolder, onEvent })
    closers.add('the receiver', receiver.stop)
    const services = await describeServices({ env, logFolder, takesUsualPorts: options.folder === null })
    const supervisor = await startSupervisor({ processes: services.specs, logFolder, onLine, onEvent, stopWaitMs })
    closers.add('the services', supervisor.stop)
    const [subscriptions] = await Promise.race([
      Promise.all([broker.subscribe(receiver.wanted), services.waitReady(readyDeadlineMs, signal)]), failure.promise,
    ])
    say(`services: ${killable.join(', ')}; receiver: ${receiver.wanted.map(({ url }) => url).join(' ')}`)
    say('The sample allows http: and loopback endpoints (POSTHOUSE_ALLOW_HTTP, POSTHOUSE_ALLOW_ADDRESSES); posthouse by itself refuses both.')

    const own = createLedger({ source: broker.eventsTopic, subscriptions })
    ledger = own
    const received = await openReceivedLog(receiver.logFile, own.arrived)
    closers.add('the receiver\'s log', received.close)
    return {
      broker, services, supervisor, received, ledger: own, subscriptions, environment: env, logFolder,
      failed: failure.promise, deadLetters: () => deadLetters, close: closers.close,
    }
  } catch (error) {
    await closers.close()
    throw error
  }
}
