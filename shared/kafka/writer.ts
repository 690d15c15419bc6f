import type { KafkaLog } from './client.ts'
import { ProduceError } from './produce-error.ts'
import type { ProducedRecord } from './produced-record.ts'
import type { Producer } from './producer.ts'

export type Writer = {
  /** Resolves when Kafka has every record; false when the producer was closed before. */
  write(records: readonly ProducedRecord[]): Promise<boolean>
  /** False while the producer is full or a topic refuses records: what waits is bounded only if nothing new is begun then. */
  hasRoom(): boolean
  room(): Promise<void>
  /** Topics that refuse our records now; the service is not ready while there are any. */
  refusals(): string[]
}

type Refusal = { records: number; saidAt: number }

const firstPauseMs = 500
const longestPauseMs = 10_000
/** However many records a topic refuses, it is said this often. */
const sayAgainMs = 30_000

/**
 * Writes what must not be lost (an outcome was paid for with a request, an event is delivered only through us): what a broker refuses
 * (a missing topic, a missing right, a limit lowered) is tried again until it is mended, and said meanwhile.
 */
export function createWriter(producer: Pick<Producer, 'send' | 'hasRoom' | 'room'>, log: KafkaLog): Writer {
  const refused = new Map<string, Refusal>()
  let waiters: (() => void)[] = []

  async function writeOne(record: ProducedRecord): Promise<boolean> {
    let isRefused = false
    try {
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
        try {
          await producer.send(record)
          return true
        } catch (error) {
          if (!(error instanceof ProduceError)) throw error
          if (error.reason === 'closed') return false
          refuse(record.topic, error, isRefused)
          isRefused = true
          await new Promise((resolve) => { setTimeout(resolve, pauseMs).unref() })
        }
      }
    } finally {
      if (isRefused) release(record.topic)
    }
  }

  function refuse(topic: string, error: ProduceError, isCounted: boolean): void {
    const refusal = refused.get(topic) ?? { records: 0, saidAt: -Infinity }
    refused.set(topic, refusal)
    if (!isCounted) refusal.records += 1
    if (performance.now() - refusal.saidAt < sayAgainMs) return
    refusal.saidAt = performance.now()
    log('error', 'Kafka refuses records; they are kept and tried again', { topic, reason: error.reason, records: refusal.records, error })
  }

  function release(topic: string): void {
    const refusal = refused.get(topic)
    if (refusal && --refusal.records === 0) refused.delete(topic)
    if (refused.size > 0) return
    const waiting = waiters
    waiters = []
    for (const wake of waiting) wake()
  }

  return {
    async write(records) {
      const taken = await Promise.all(records.map(writeOne))
      return taken.every(Boolean)
    },
    hasRoom: () => refused.size === 0 && producer.hasRoom(),
    async room() {
      while (refused.size > 0 || !producer.hasRoom()) {
        await producer.room()
        if (refused.size > 0) await new Promise<void>((resolve) => { waiters.push(resolve) })
      }
    },
    refusals: () => [...refused.keys()],
  }
}
