import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { startLocalKafka } from '../dev/kafka/kafka.ts'
import { describeEnd } from '../dev/leash.ts'

/** The Kafka of a run. */
export type Cluster = {
  /** As KAFKA_BROKERS. */
  readonly brokers: string
  /** Of the broker that was started for this run; null: it was there already, and what we make on it is ours to delete. */
  readonly pid: number | null
  readonly topicPrefix: string
  readonly groupPrefix: string
  /** Rejects when a broker of our own ends by itself. */
  readonly failed: Promise<never>
  close(): Promise<void>
}

/** The one that KAFKA_BROKERS names, else one of our own, without any data of earlier runs. `onLog` takes Kafka's warnings and errors. */
export async function openCluster(folder: string, onLog: (line: string) => void, env: NodeJS.ProcessEnv = process.env): Promise<Cluster> {
  const brokers = env['KAFKA_BROKERS']?.trim()
  if (brokers) {
    const name = `posthouse-sample-${randomBytes(4).toString('hex')}`
    return { brokers, pid: null, topicPrefix: `${name}.`, groupPrefix: name, failed: new Promise(() => {}), close: async () => undefined }
  }
  const kafka = await startLocalKafka({ folder: join(folder, 'kafka'), fresh: true, onLog })
  let isClosing = false
  const failed = kafka.ended.then((end): Promise<never> => {
    if (isClosing) return new Promise(() => {})
    throw new Error(`Kafka ended by itself (${describeEnd(end)}): its log is beside those of the services`)
  })
  // Whoever is not waiting for it just then must not end the process.
  failed.catch(() => undefined)
  return {
    brokers: kafka.brokers, pid: kafka.pid, topicPrefix: 'webhooks.', groupPrefix: 'posthouse', failed,
    close: () => {
      isClosing = true
      return kafka.stop()
    },
  }
}
