import type { BrokerTime } from '../kafka/broker-time.ts'
import type { ProducedRecord } from '../kafka/produced-record.ts'
import type { Producer } from '../kafka/producer.ts'
import type { Turn } from '../kafka/turn.ts'
import { encodeDelivery } from '../records/delivery-codec.ts'
import type { SubscriptionTable } from '../subscriptions/table.ts'
import type { DeadLetterFilter } from './filter.ts'
import type { GoneEndpoints } from './gone.ts'
import { inBatches } from './in-batches.ts'
import { deadLetterKey } from './key.ts'
import { chooseNamed } from './named.ts'
import { createTally, type RunReport, type Tally } from './report.ts'
import { indexDeadLetters, readDeadLetters, type DeadLetterIndex, type DeadLetterSource, type FoundDeadLetter } from './scan.ts'
import { tombstone } from './tombstone.ts'
import { judgeReplay, refusedAsCleared, type ReplayVerdict } from './verdict.ts'

export type ReplayRequest = {
  readonly filter: DeadLetterFilter
  /** Sends what was replayed or discarded before once more, where the filter names it by id: as this replay number or the next one of its own. */
  readonly forcedReplay?: number | null
  readonly signal?: AbortSignal
  /** `done`: looked at so far, of about `total`. */
  readonly onProgress?: (progress: { readonly phase: 'indexing' | 'replaying'; readonly done: number; readonly total: number; readonly written: number }) => void
}

export type ReplaySource = DeadLetterSource & {
  /** Caught up, and followed as long as the replay lasts: what a subscription says when a batch is written counts. */
  readonly subscriptions: Pick<SubscriptionTable, 'get' | 'isNewer'>
  readonly gone: GoneEndpoints
}

export type ReplayTarget = {
  readonly producer: Pick<Producer, 'send'>
  readonly brokerTime: Pick<BrokerTime, 'nowForDue'>
  readonly deliveriesTopic: string
  readonly turn: Pick<Turn, 'isHeld'>
  readonly ratePerSecond?: number | null
  readonly unansweredAfterMs?: number
}

/** What a replay would do: how many, and to which subscriptions. */
export type ReplayPlan = RunReport & {
  readonly bySubscription: ReadonlyMap<string, { readonly endpointKey: string; readonly url: string; readonly count: number }>
}

type Judged = { readonly letter: FoundDeadLetter; readonly verdict: Exclude<ReplayVerdict, { kind: 'refused' }> }

/** Looks at what a replay would do, and writes nothing. @throws when Kafka gives no answer, or the signal is aborted */
export async function planReplay(source: ReplaySource, request: ReplayRequest): Promise<ReplayPlan> {
  const tally = createTally()
  const bySubscription = new Map<string, { endpointKey: string; url: string; count: number }>()
  const { pages, missing } = await judged(source, request, tally)
  for await (const page of pages) {
    request.signal?.throwIfAborted()
    for (const { verdict } of page) {
      if (verdict.kind === 'leftover') {
        tally.counts.leftovers += 1
        continue
      }
      tally.counts.done += 1
      const { id, endpointKey, url } = verdict.subscription
      const known = bySubscription.get(id) ?? { endpointKey, url, count: 0 }
      bySubscription.set(id, known)
      known.count += 1
    }
  }
  return { ...tally.report('complete', missing), bySubscription }
}

/**
 * Sends dead letters again: of each the delivery as replay n + 1, keyed by the endpoint that its subscription has now, and once that is
 * acknowledged a tombstone for the key of n. A dead letter that the replay gives is another key, so the tombstone cannot erase it.
 * Batches of 500 at most, one after the other: after a kill the same command repeats one batch at most, with the same ids and numbers,
 * which delivery mostly recognises.
 * @throws when Kafka gives no answer to a read
 */
export async function replayDeadLetters(source: ReplaySource, target: ReplayTarget, request: ReplayRequest): Promise<RunReport> {
  const { topic } = source
  const { producer, brokerTime, deliveriesTopic, turn, ratePerSecond = null } = target
  const tally = createTally()
  const now = (): number => Math.round(brokerTime.nowForDue())

  /** @returns whether Kafka has it */
  async function send(letter: FoundDeadLetter, record: ProducedRecord): Promise<boolean> {
    try {
      await producer.send(record)
      return true
    } catch (error) {
      tally.fail({ key: deadLetterKey(letter.id), message: error instanceof Error ? error.message : String(error) })
      return false
    }
  }

  async function settle(batch: readonly Judged[]): Promise<void> {
    const written = await Promise.all(batch.map(async ({ letter }): Promise<{ letter: FoundDeadLetter; asReplay: number; isLeftover: boolean } | null> => {
      // Again: with a slow rate it may be minutes since it was read.
      const verdict = judge(source, request, letter, now())
      if (verdict.kind === 'leftover') return { letter, asReplay: verdict.asReplay, isLeftover: true }
      if (verdict.kind === 'refused') {
        tally.refuse({ key: deadLetterKey(letter.id), reason: verdict.reason, message: verdict.message })
        return null
      }
      const { delivery, subscription } = verdict
      const isWritten = await send(letter, { topic: deliveriesTopic, key: subscription.endpointKey, value: encodeDelivery(delivery) })
      return isWritten ? { letter, asReplay: delivery.replay, isLeftover: false } : null
    }))
    await Promise.all(written.map(async (one) => {
      if (one === null) return
      const { letter, asReplay, isLeftover } = one
      const isCleared = letter.standing.kind === 'cleared' || await send(letter, tombstone(topic, letter.id, { how: 'replayed', asReplay }))
      if (!isCleared) return
      if (isLeftover) tally.counts.leftovers += 1
      else tally.counts.done += 1
    }))
  }

  let found: Awaited<ReturnType<typeof judged>>
  try {
    found = await judged(source, request, tally)
  } catch (error) {
    if (request.signal?.aborted) return tally.report('interrupted', [])
    throw error
  }
  const { pages, missing } = found
  const end = await inBatches(pages, {
    turn, ratePerSecond, settle, weightOf: weigh,
    ...(request.signal === undefined ? {} : { signal: request.signal }),
    ...(target.unansweredAfterMs === undefined ? {} : { unansweredAfterMs: target.unansweredAfterMs }),
  })
  return tally.report(end, missing)
}

function weigh({ letter: { content } }: Judged): number {
  if (content.kind !== 'readable') return 0
  const { body, sourceHeaders } = content.deadLetter.delivery
  return body.length + sourceHeaders.reduce((sum, { name, value }) => sum + name.length + value.length, 0)
}

/** Both passes: what there is to replay, page by page; what is refused is counted on the way. */
async function judged(source: ReplaySource, request: ReplayRequest, tally: Tally): Promise<{ pages: AsyncIterable<readonly Judged[]>; missing: readonly string[] }> {
  const { filter, forcedReplay = null, onProgress } = request
  const written = (): number => tally.counts.done + tally.counts.leftovers
  const index = await indexDeadLetters(source, filter, {
    ...(request.signal === undefined ? {} : { signal: request.signal }),
    onProgress: (done, total) => onProgress?.({ phase: 'indexing', done, total, written: 0 }),
  })
  const { keys, missing } = filter.ids === undefined ? { keys: undefined, missing: [] } : chooseNamed(index, filter.ids)
  for (const key of keys ?? []) refuseNamed(index, key, forcedReplay !== null, tally)

  async function* read(): AsyncGenerator<readonly Judged[], void, void> {
    // Not stopped by the signal: who writes stops between two batches.
    const found = readDeadLetters(source, index, keys === undefined ? filter : { ...filter, ids: keys }, {
      includesCleared: forcedReplay !== null && keys !== undefined,
      onProgress: (done, total) => onProgress?.({ phase: 'replaying', done, total, written: written() }),
    })
    for await (const letters of found) {
      yield letters.flatMap((letter): Judged[] => {
        const verdict = judge(source, request, letter, 0)
        if (verdict.kind !== 'refused') return [{ letter, verdict }]
        tally.refuse({ key: deadLetterKey(letter.id), reason: verdict.reason, message: verdict.message })
        return []
      })
    }
  }
  return { pages: read(), missing }
}

/** What needs no look at the dead letter itself, which compaction may have taken. */
function refuseNamed(index: DeadLetterIndex, key: string, isForced: boolean, tally: Tally): void {
  const named = index.named.get(key)
  if (!named?.cleared) return
  if (!isForced) {
    const { reason, message } = refusedAsCleared(named.cleared.clearing, named.cleared.at)
    tally.refuse({ key, reason, message })
  } else if (named.place === null) {
    tally.refuse({ key, reason: 'not_kept', message: 'it was cleared, and Kafka has only its tombstone left: send the event again with "posthouse events replay"' })
  }
}

function judge({ subscriptions, gone }: ReplaySource, { forcedReplay = null }: ReplayRequest, letter: FoundDeadLetter, routedAt: number): ReplayVerdict {
  const subscriptionId = letter.facts.subscriptionId ?? ''
  const found = subscriptions.isNewer(subscriptionId) ? 'newer' : subscriptions.get(subscriptionId)
  const goneAt = typeof found === 'object' ? (gone.get(found.endpointKey) ?? null) : null
  return judgeReplay({ letter, subscription: found, goneAt, clearing: null, forcedReplay, routedAt })
}
