import type { Attempt } from '../domain/delivery.ts'
import { createHashSlots, type HashSlots } from '../domain/hash-slots.ts'
import { readBackwards, type Scanner, type ScanRange } from '../kafka/scanner.ts'
import { createAttemptReader, type AttemptFilter } from './attempt-filter.ts'
import { attemptRanges, type TimeBounds } from './attempt-ranges.ts'
import type { ScanAccount } from './scan-account.ts'

/** A delivery by what `attempts` has of it last. `recordedAt`: epoch ms, broker time. */
export type DeliverySummary = Attempt & { readonly recordedAt: number }

export type DeliveryQuery = TimeBounds & AttemptFilter & {
  /** The state a delivery is in now; any where left out. */
  readonly states?: readonly Attempt['state'][]
  /** What its last attempt returned: an HTTP status, or the short code of an error. */
  readonly outcome?: string
  /** At most so many, those whose last attempt is the latest. */
  readonly limit: number
}

/** Deliveries of which it is remembered that a later attempt was seen: some 80 MB. Beyond it, older attempts would pass for the last. */
const mostDeliveries = 2_000_000

/**
 * The deliveries whose last attempt came last, latest first. Each partition is read from its end, so that the last record of a delivery
 * is met first and reading ends with `limit` of them; whatever is asked for, memory is bounded. Only what was attempted, or ended without
 * an attempt, is in `attempts`: what waits for its first attempt is not found. `account` says what was read.
 */
export async function listDeliveries(
  scanner: Scanner, topic: string, query: DeliveryQuery, account: ScanAccount, { maxDeliveries = mostDeliveries } = {},
): Promise<DeliverySummary[]> {
  const ranges = await attemptRanges(scanner, topic, query)
  const latest = createLatest()
  const read = createAttemptReader(query)
  let found = new Map<string, DeliverySummary>()

  async function search(range: ScanRange): Promise<void> {
    let foundHere = 0
    // Older ones than these would be cut off in the end.
    const isFull = found.size >= query.limit
    const oldestFound = isFull ? Math.min(...[...found.values()].map(({ recordedAt }) => recordedAt)) : -Infinity
    for await (const records of readBackwards(scanner, range)) {
      account.took(records)
      for (const record of records) {
        if (record.timestamp < oldestFound) return
        const attempt = read(record)
        if (attempt === null) continue
        if (attempt === 'unreadable') {
          account.unreadableOne()
          continue
        }
        // Also in another partition: the key changes with the URL.
        if (!latest.isLater(attempt.deliveryId, record.timestamp)) continue
        found.delete(attempt.deliveryId)
        if (isAsked(attempt, query)) {
          found.set(attempt.deliveryId, { ...attempt, recordedAt: record.timestamp })
          foundHere += 1
        }
        if (foundHere >= query.limit) return
        if (latest.size >= maxDeliveries) return account.leaveOut(`all before ${maxDeliveries} deliveries: ask for less, by time or by endpoint`)
      }
    }
  }

  account.begin(ranges)
  for (const range of ranges) {
    await search(range)
    found = new Map([...found].sort(([, a], [, b]) => b.recordedAt - a.recordedAt).slice(0, query.limit))
    if (account.leftOut !== null) break
  }
  return [...found.values()]
}

const isAsked = (attempt: Attempt, { states, outcome }: DeliveryQuery): boolean =>
  (states === undefined || states.includes(attempt.state)) &&
  (outcome === undefined || String(attempt.status) === outcome || attempt.error === outcome)

/** When the latest known record of each delivery was written. */
function createLatest(): { readonly size: number; isLater(deliveryId: string, at: number): boolean } {
  const slots: HashSlots = createHashSlots()
  let times = new Float64Array(slots.capacity)
  return {
    get size() {
      return slots.size
    },
    isLater(deliveryId, at) {
      const slot = slots.take(deliveryId)
      if (slot >= times.length) {
        const grown = new Float64Array(slots.capacity)
        grown.set(times)
        times = grown
      }
      if (times[slot]! >= at) return false
      times[slot] = at
      return true
    },
  }
}
