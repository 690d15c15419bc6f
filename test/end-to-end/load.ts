import { setTimeout as delay } from 'node:timers/promises'
import type { Cleanup } from '../support/kafka.ts'
import type { Pipeline } from './pipeline.ts'

export type Load = {
  /** Ids of the events that are acknowledged by the brokers. */
  readonly ids: readonly string[]
  /** Resolves when so many more have been acknowledged. */
  more(count: number): Promise<void>
  /** Sends no more; resolves with all that were sent. */
  stop(): Promise<readonly string[]>
}

const batchSize = 20
/** The load never runs further ahead of the receivers than this: it goes on for as long as a test needs, whatever the machine. */
const mostAhead = 200
const lookEveryMs = 5
/** Between two batches: enough to keep everybody busy, and not so much that a small machine only stalls. */
const pauseMs = 40

/** Sends events batch by batch until it is stopped. `received`: how many of them have come. `typeOf` spreads them over subscriptions. */
export function startLoad(t: Cleanup, pipeline: Pick<Pipeline, 'send'>, { name, received, typeOf = () => 'order.created' }: {
  readonly name: string
  readonly received: () => number
  readonly typeOf?: (number: number) => string
}): Load {
  const ids: string[] = []
  let isStopped = false

  async function run(): Promise<void> {
    while (!isStopped) {
      if (ids.length - received() >= mostAhead) {
        await delay(lookEveryMs)
        continue
      }
      const batch = Array.from({ length: batchSize }, (_, index) => ({ id: `${name}_${ids.length + index}`, type: typeOf(ids.length + index) }))
      await pipeline.send(batch)
      ids.push(...batch.map(({ id }) => id))
      await delay(pauseMs)
    }
  }

  const running = run()
  // Whoever stops it hears of a failure; until then it must not end the test's process.
  running.catch(() => undefined)
  t.after(() => { isStopped = true })
  return {
    ids,
    async more(count) {
      const wanted = ids.length + count
      const failed = running.then(() => undefined)
      while (ids.length < wanted) await Promise.race([delay(lookEveryMs), failed])
    },
    async stop() {
      isStopped = true
      await running
      return ids
    },
  }
}
