import { setTimeout as sleep } from 'node:timers/promises'
import type { Turn } from '../kafka/turn.ts'

/**
 * How a run over dead letters ended. `interrupted`: it was asked to stop, and did so between two batches. `turn_lost`: somebody else may
 * have the turn. `unanswered`: Kafka acknowledged nothing in time; what was being written may or may not be. In each case the same
 * command goes on where this one ended.
 */
export type RunEnd = 'complete' | 'interrupted' | 'turn_lost' | 'unanswered'

export type BatchOptions<Item> = {
  readonly turn: Pick<Turn, 'isHeld'>
  readonly weightOf: (item: Item) => number
  /** Items a second, at most; null: as fast as Kafka takes them. */
  readonly ratePerSecond: number | null
  readonly signal?: AbortSignal
  readonly unansweredAfterMs?: number
  /** Writes one batch and resolves when Kafka has answered for all of it. */
  readonly settle: (batch: readonly Item[]) => Promise<void>
}

/** A kill repeats at most one batch: the next one begins when all of the one before is written. */
export const mostInBatch = 500
const mostBytes = 4 * 1024 * 1024
/** With a rate, a batch is what half a second is worth. */
const batchSeconds = 0.5
const defaultUnansweredAfterMs = 60_000

/** Collects items into batches of at most 500 and about 4 MiB, and settles one after the other. */
export async function inBatches<Item>(pages: AsyncIterable<readonly Item[]>, options: BatchOptions<Item>): Promise<RunEnd> {
  const { turn, weightOf, ratePerSecond, signal, settle, unansweredAfterMs = defaultUnansweredAfterMs } = options
  const most = ratePerSecond === null ? mostInBatch : Math.min(mostInBatch, Math.max(1, Math.ceil(ratePerSecond * batchSeconds)))
  let batch: Item[] = []
  let bytes = 0
  let nextAt = performance.now()

  async function flush(): Promise<RunEnd | null> {
    if (batch.length === 0) return null
    if (ratePerSecond !== null) {
      await sleep(Math.max(0, nextAt - performance.now()), undefined, { signal }).catch(() => undefined)
      nextAt = Math.max(nextAt, performance.now()) + (batch.length / ratePerSecond) * 1000
    }
    if (signal?.aborted) return 'interrupted'
    if (!await turn.isHeld()) return 'turn_lost'
    const settled = await inTime(settle(batch), unansweredAfterMs)
    batch = []
    bytes = 0
    return settled ? null : 'unanswered'
  }

  for await (const items of pages) {
    for (const item of items) {
      batch.push(item)
      bytes += weightOf(item)
      if (batch.length < most && bytes < mostBytes) continue
      const end = await flush()
      if (end !== null) return end
    }
    if (signal?.aborted) return 'interrupted'
  }
  return await flush() ?? 'complete'
}

/** False when the work takes longer; it is left behind then. */
async function inTime(work: Promise<void>, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => { timer = setTimeout(() => resolve(false), withinMs) })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
