import type { Producer } from '../kafka/producer.ts'
import type { Turn } from '../kafka/turn.ts'
import type { DeadLetterFilter } from './filter.ts'
import { inBatches } from './in-batches.ts'
import { deadLetterKey } from './key.ts'
import { chooseNamed } from './named.ts'
import { createTally, type RunReport, type Tally } from './report.ts'
import { indexDeadLetters, readDeadLetters, type DeadLetterSource, type FoundDeadLetter, type ReadProgress } from './scan.ts'
import { tombstone } from './tombstone.ts'
import { refusedAsCleared } from './verdict.ts'

export type DiscardRequest = {
  readonly filter: DeadLetterFilter
  readonly signal?: AbortSignal
  readonly onProgress?: ReadProgress
}

export type DiscardTarget = {
  readonly producer: Pick<Producer, 'send'>
  /** The same turn as a replay's, so that nothing is discarded and replayed at once. */
  readonly turn: Pick<Turn, 'isHeld'>
  readonly unansweredAfterMs?: number
}

/** How many would be discarded, by reason. */
export type DiscardPlan = RunReport & { readonly byReason: ReadonlyMap<string, number> }

/** @throws when Kafka gives no answer, or the signal is aborted */
export async function planDiscard(source: DeadLetterSource, request: DiscardRequest): Promise<DiscardPlan> {
  const tally = createTally()
  const byReason = new Map<string, number>()
  const { pages, missing } = await discardable(source, request, tally)
  for await (const letters of pages) {
    request.signal?.throwIfAborted()
    for (const { facts: { reason } } of letters) byReason.set(reason ?? 'unknown', (byReason.get(reason ?? 'unknown') ?? 0) + 1)
    tally.counts.done += letters.length
  }
  return { ...tally.report('complete', missing), byReason }
}

/** Clears dead letters that are not wanted any more: their tombstones say so. @throws when Kafka gives no answer to a read */
export async function discardDeadLetters(source: DeadLetterSource, { producer, turn, unansweredAfterMs }: DiscardTarget, request: DiscardRequest): Promise<RunReport> {
  const tally = createTally()
  let found: Awaited<ReturnType<typeof discardable>>
  try {
    found = await discardable(source, request, tally)
  } catch (error) {
    if (request.signal?.aborted) return tally.report('interrupted', [])
    throw error
  }
  const { pages, missing } = found
  const end = await inBatches(pages, {
    turn, ratePerSecond: null, weightOf: () => 0,
    ...(request.signal === undefined ? {} : { signal: request.signal }),
    ...(unansweredAfterMs === undefined ? {} : { unansweredAfterMs }),
    async settle(batch) {
      await Promise.all(batch.map(async ({ id }) => {
        try {
          await producer.send(tombstone(source.topic, id, { how: 'discarded' }))
          tally.counts.done += 1
        } catch (error) {
          tally.fail({ key: deadLetterKey(id), message: error instanceof Error ? error.message : String(error) })
        }
      }))
    },
  })
  return tally.report(end, missing)
}

async function discardable(
  source: DeadLetterSource, { filter, signal, onProgress }: DiscardRequest, tally: Tally,
): Promise<{ pages: AsyncIterable<readonly FoundDeadLetter[]>; missing: readonly string[] }> {
  const options = onProgress === undefined ? {} : { onProgress }
  const index = await indexDeadLetters(source, filter, { ...options, ...(signal === undefined ? {} : { signal }) })
  const { keys, missing } = filter.ids === undefined ? { keys: undefined, missing: [] } : chooseNamed(index, filter.ids)
  for (const key of keys ?? []) {
    const cleared = index.named.get(key)?.cleared
    if (!cleared) continue
    const { reason, message } = refusedAsCleared(cleared.clearing, cleared.at)
    tally.refuse({ key, reason, message })
  }
  async function* read(): AsyncGenerator<readonly FoundDeadLetter[], void, void> {
    for await (const letters of readDeadLetters(source, index, keys === undefined ? filter : { ...filter, ids: keys }, options)) {
      yield letters.filter(({ id, content }) => {
        if (content.kind !== 'newer') return true
        tally.refuse({ key: deadLetterKey(id), reason: 'newer', message: `${content.detail}; it stays as it is` })
        return false
      })
    }
  }
  return { pages: read(), missing }
}
