import type { Event } from '../domain/event.ts'
import { isWanted, matches } from '../domain/matching.ts'
import { routedDelivery } from '../domain/routed-delivery.ts'
import type { StoredSubscription } from '../domain/subscription.ts'
import type { ScannedRecord, Scanner, ScanRange } from '../kafka/scanner.ts'
import { readEvent, type DoorOptions } from '../records/event-door.ts'
import type { KnownDeliveries } from './delivered.ts'
import type { Sending } from './replay-sending.ts'
import type { ScanAccount } from './scan-account.ts'

export type EventsReplay = {
  readonly subscription: StoredSubscription
  /** The number of this replay, which all its deliveries carry; see `replayNumber`. */
  readonly replay: number
  /** Topics events are read from, full names, and how: as the router does. */
  readonly topics: readonly string[]
  readonly door: DoorOptions
  /** By the time of the event's record, epoch ms: from `since` on, and before `until`. */
  readonly since: number
  readonly until?: number
  /** Only these: an exact type, `prefix.*` or `*`. */
  readonly eventType?: string
  /** Leaves out what was delivered; null: everything is sent. */
  readonly known: KnownDeliveries | null
}

/** What a replay found; all of it grows while it runs. */
export type ReplayCounts = {
  /** Events of that time which the subscription wants. */
  wanted: number
  /** Of those: left out, as `attempts` has a success of them. */
  delivered: number
  /** Of those that are sent: attempted before, and still waiting for a retry. Only known where `known` was given. */
  waiting: number
  /** Records of that time that are no events, by reason. */
  readonly refused: Map<string, number>
}

export const createReplayCounts = (): ReplayCounts => ({ wanted: 0, delivered: 0, waiting: 0, refused: new Map() })

/**
 * The number of a replay that begins at `startedAt` (epoch ms): its second. Above that of every delivery the router made and of every
 * replay before it, so what it sends is sent whether or not it was delivered before.
 */
export const replayNumber = (startedAt: number): number => Math.floor(startedAt / 1000)

/**
 * Reads the events topics again and sends what one subscription wants, as the deliveries the router would have made for it: the same
 * ids, bytes and key. The topics' ends are those of when it began. Whether the subscription is active is not asked. `sending` null: only
 * counts. Ends early when `signal` is aborted.
 * @throws when nothing can be read or written for long
 */
export async function replayEvents(
  scanner: Scanner, replay: EventsReplay, sending: Sending | null,
  { counts, account, signal }: { readonly counts: ReplayCounts; readonly account: ScanAccount; readonly signal: AbortSignal },
): Promise<void> {
  const { topics, since, until = Infinity } = replay
  // All ends are fixed before the first record is sent.
  const ranges = (await Promise.all(topics.map((topic) => scanner.ranges(topic, { since })))).flat()
  account.begin(ranges)
  for (const range of ranges) await replayRange(range)
  await sending?.idle()

  async function replayRange(range: ScanRange): Promise<void> {
    for await (const records of scanner.read(range)) {
      for (const record of records) {
        if (signal.aborted) return
        // Producers' times are in no order, so only the broker's tell that nothing more can follow.
        if (record.timestamp >= until && record.isAppendTime) return
        account.took([record])
        if (record.timestamp < since || record.timestamp >= until) continue
        const event = accept(record)
        if (event !== null) await take(event)
      }
    }
  }

  function accept(record: ScannedRecord): Event | null {
    const seen = readEvent(record, replay.door)
    if (seen.kind === 'event') return seen.event
    // A record without a value is no event either, and nothing is wrong with it.
    if (seen.kind !== 'skipped') counts.refused.set(seen.reason, (counts.refused.get(seen.reason) ?? 0) + 1)
    return null
  }

  async function take(event: Event): Promise<void> {
    const { subscription: { id, tenant, eventTypes: patterns }, eventType, known } = replay
    if (!isWanted({ tenant, patterns }, event) || (eventType !== undefined && !matches(eventType, event.type))) return
    counts.wanted += 1
    const delivery = routedDelivery(event, id, { replay: replay.replay, routedAt: sending?.now() ?? 0 })
    const state = known?.stateOf(delivery.id) ?? null
    if (state === 'delivered') {
      counts.delivered += 1
      return
    }
    if (state === 'waiting') counts.waiting += 1
    if (sending === null) return
    await sending.send(delivery)
  }
}
