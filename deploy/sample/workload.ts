import { setTimeout as delay } from 'node:timers/promises'
import type { Producer } from '../../shared/kafka/producer.ts'
import { eventOf } from './corpus.ts'
import type { SentEvent } from './account.ts'

/** Until the full rate is reached: processes that have just started are slow, and what is in a hurry then is not what is to be seen. */
const rampMs = 10_000

/** When the `n`-th event (from 0) leaves, ms after the first: the rate rises evenly up to `ratePerSecond`, and then stays. */
export function leavesAfterMs(n: number, ratePerSecond: number): number {
  const inRamp = ratePerSecond * rampMs / 2_000
  return n < inRamp ? Math.sqrt(2_000 * rampMs * n / ratePerSecond) : rampMs + (n - inRamp) * 1_000 / ratePerSecond
}

/**
 * Produces `count` events, each as JSON without headers, and resolves when Kafka has acknowledged all of them. Rejects when one is
 * refused, and when `signal` aborts. The rate is kept on average: what was late is made up for.
 */
export async function sendEvents({ producer, topic, count, ratePerSecond, onAcknowledged, signal }: {
  readonly producer: Producer
  readonly topic: string
  readonly count: number
  readonly ratePerSecond: number
  readonly onAcknowledged: (event: SentEvent) => void
  readonly signal: AbortSignal
}): Promise<void> {
  const refused = Promise.withResolvers<never>()
  // Whoever is not waiting for it just then must not end the process.
  refused.promise.catch(() => undefined)
  const startedAt = performance.now()
  const sending: Promise<void>[] = []

  async function send(n: number): Promise<void> {
    const { id, body, sha256 } = eventOf(n, Date.now())
    try {
      await producer.send({ topic, key: null, value: body })
      onAcknowledged({ id, sha256, acknowledgedAt: Date.now() })
    } catch (error) {
      refused.reject(error instanceof Error ? error : new Error(String(error)))
    }
  }

  for (let n = 1; n <= count; n++) {
    const dueInMs = startedAt + leavesAfterMs(n - 1, ratePerSecond) - performance.now()
    if (dueInMs > 0) await Promise.race([delay(dueInMs, undefined, { signal }), refused.promise])
    if (!producer.hasRoom()) await Promise.race([producer.room(), refused.promise])
    signal.throwIfAborted()
    sending.push(send(n))
  }
  await Promise.race([Promise.all(sending), refused.promise])
}
