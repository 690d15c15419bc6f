import type { Log } from '../../shared/log/log.ts'
import { ProduceError } from '../../shared/kafka/produce-error.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import type { Producer } from '../../shared/kafka/producer.ts'

const firstPauseMs = 500
const longestPauseMs = 30_000

export type Writer = {
  /** Resolves when Kafka has every record; false when the producer was closed before. */
  write(records: readonly ProducedRecord[]): Promise<boolean>
  /** Topics that refuse our records now; the service is not ready while there are any. */
  refusals(): string[]
}

/**
 * Writes what an outcome causes. An outcome was paid for with a request and must not be lost: what a broker refuses (a missing topic,
 * a missing right, a limit lowered) is tried again until it is mended, and said meanwhile.
 */
export function createWriter(producer: Producer, log: Log): Writer {
  const refused = new Map<string, number>()

  async function writeOne(record: ProducedRecord): Promise<boolean> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        await producer.send(record)
        return true
      } catch (error) {
        if (!(error instanceof ProduceError)) throw error
        if (error.reason === 'closed') return false
        log.error('Kafka refuses a record; it is kept and tried again', { topic: record.topic, reason: error.reason, error })
        refused.set(record.topic, (refused.get(record.topic) ?? 0) + 1)
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
        const left = (refused.get(record.topic) ?? 1) - 1
        if (left > 0) refused.set(record.topic, left)
        else refused.delete(record.topic)
      }
    }
  }

  return {
    async write(records) {
      const taken = await Promise.all(records.map(writeOne))
      return taken.every(Boolean)
    },
    refusals: () => [...refused.keys()],
  }
}
