import { readBackwards, type Scanner } from '../kafka/scanner.ts'
import { createAttemptReader } from './attempt-filter.ts'
import { attemptRanges, type TimeBounds } from './attempt-ranges.ts'
import type { DeliverySummary } from './deliveries.ts'
import type { ScanAccount } from './scan-account.ts'

/** Every attempt of one delivery and how it ended, oldest first. */
export type DeliveryHistory = {
  readonly attempts: readonly DeliverySummary[]
  /** From the first attempt of each replay on, none is missing; false where the topic does not go back so far, or not all was read. */
  readonly isWhole: boolean
}

/**
 * The history of a delivery, its replays included. Partitions are read from their ends, a part of each in turn, until the history is
 * whole or nothing is left: an id alone does not tell the partition, `endpointKey` does.
 */
export async function findDelivery(
  scanner: Scanner, topic: string, query: TimeBounds & { readonly deliveryId: string; readonly endpointKey?: string }, account: ScanAccount,
): Promise<DeliveryHistory> {
  const ranges = await attemptRanges(scanner, topic, query)
  const read = createAttemptReader({ deliveryId: query.deliveryId })
  const found = new Map<string, DeliverySummary>()
  account.begin(ranges)
  let readers = ranges.map((range) => readBackwards(scanner, range))
  // Before the first attempt of the router's own delivery there is nothing; what only a replay of events made has no such attempt.
  const isFound = (): boolean => [...found.values()].some(({ replay }) => replay === 0) && isWhole([...found.values()])
  while (readers.length > 0 && !isFound()) {
    const left: typeof readers = []
    for (const reader of readers) {
      const { value: records, done } = await reader.next()
      if (done) continue
      left.push(reader)
      account.took(records)
      for (const record of records) {
        const attempt = read(record)
        if (attempt === 'unreadable') account.unreadableOne()
        // A record whose acknowledgement was lost is there twice.
        else if (attempt !== null) found.set(`${attempt.replay} ${attempt.attempt} ${attempt.startedAt} ${attempt.state}`, { ...attempt, recordedAt: record.timestamp })
      }
    }
    readers = left
  }
  const attempts = [...found.values()].sort((a, b) => a.recordedAt - b.recordedAt || a.attempt - b.attempt)
  return { attempts, isWhole: isWhole(attempts) }
}

function isWhole(attempts: readonly DeliverySummary[]): boolean {
  return [...Map.groupBy(attempts, ({ replay }) => replay).values()].every((ofReplay) => {
    const numbers = new Set(ofReplay.map(({ attempt }) => attempt))
    return Array.from({ length: Math.max(...numbers) }, (_, at) => at + 1).every((number) => numbers.has(number))
  })
}
