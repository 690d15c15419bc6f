import type { Delivery } from '../domain/delivery.ts'
import type { BrokerTime } from '../kafka/broker-time.ts'
import type { Producer } from '../kafka/producer.ts'
import { encodeDelivery } from '../records/delivery-codec.ts'
import { createPace } from './pace.ts'

/** Writes deliveries for one endpoint, as fast as Kafka takes them or at a given pace. */
export type Sending = {
  /** Epoch ms, broker time, for `routedAt`. */
  now(): number
  /** Resolves when the next may come; what becomes of this one is counted. @throws ReplayStalledError */
  send(delivery: Delivery): Promise<void>
  /** Resolves when everything sent was acknowledged or refused. @throws ReplayStalledError */
  idle(): Promise<void>
  /** Acknowledged by all in-sync replicas. */
  sent(): number
  /** Refused for good. */
  failed(): number
  /** Neither as yet. */
  underWay(): number
  /** Of the first one refused. */
  firstFailure(): Error | null
}

/** Kafka took nothing for so long that going on makes no sense; what was on its way may or may not be written. */
export class ReplayStalledError extends Error {
  override readonly name = 'ReplayStalledError'
}

/** Records unacknowledged at a time: bounded by the producer's bytes too. */
const mostUnderWay = 1_000
/** Who interrupts it wants to see it end, ms. */
const interruptedStallMs = 3_000

export function createSending(options: {
  readonly producer: Pick<Producer, 'send' | 'hasRoom' | 'room'>
  readonly brokerTime: BrokerTime
  readonly topic: string
  /** The subscription's own. */
  readonly endpointKey: string
  /** null: no limit. */
  readonly ratePerSecond: number | null
  readonly signal: AbortSignal
  /** How long Kafka may acknowledge nothing, ms. */
  readonly stallMs?: number
}): Sending {
  const { producer, brokerTime, topic, endpointKey, signal, stallMs = 60_000 } = options
  const pace = createPace(options.ratePerSecond, signal)
  let sent = 0
  let failed = 0
  let underWay = 0
  let firstFailure: Error | null = null
  let settledAt = performance.now()
  let waiters: (() => void)[] = []

  async function write(delivery: Delivery): Promise<void> {
    if (underWay === 0) settledAt = performance.now()
    underWay += 1
    try {
      await producer.send({ topic, key: endpointKey, value: encodeDelivery(delivery) })
      sent += 1
    } catch (error) {
      failed += 1
      firstFailure ??= error instanceof Error ? error : new Error(String(error))
    } finally {
      underWay -= 1
      settledAt = performance.now()
      wakeAll()
    }
  }

  const wakeAll = (): void => {
    for (const wake of waiters.splice(0)) wake()
  }

  /** Until at most so many are under way. */
  async function atMost(count: number): Promise<void> {
    while (underWay > count || (underWay > 0 && !producer.hasRoom())) {
      const waitedMs = performance.now() - settledAt
      const limitMs = signal.aborted ? Math.min(stallMs, interruptedStallMs) : stallMs
      if (waitedMs >= limitMs) {
        throw new ReplayStalledError(`Kafka has acknowledged nothing for ${Math.round(waitedMs / 1000)} s: ${underWay} deliveries may or may not be written`)
      }
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        waiters.push(resolve)
        timer = setTimeout(resolve, limitMs - waitedMs)
      })
      clearTimeout(timer)
    }
  }

  signal.addEventListener('abort', wakeAll, { once: true })
  return {
    now: () => Math.round(brokerTime.nowForDue()),
    async send(delivery) {
      await pace.next()
      if (signal.aborted) return
      void write(delivery)
      // Until the first acknowledgement this machine's clock is all there is, and it may be anything: one record finds out.
      await atMost(brokerTime.uncertaintyMs() === null ? 0 : mostUnderWay - 1)
    },
    idle: () => atMost(0),
    sent: () => sent,
    failed: () => failed,
    underWay: () => underWay,
    firstFailure: () => firstFailure,
  }
}
