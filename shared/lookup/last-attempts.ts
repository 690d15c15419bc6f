import { readBackwards, type Scanner } from '../kafka/scanner.ts'
import { createAttemptReader, type AttemptFilter } from './attempt-filter.ts'
import { attemptRanges, type TimeBounds } from './attempt-ranges.ts'
import type { DeliverySummary } from './deliveries.ts'
import type { ScanAccount } from './scan-account.ts'

/** The last attempts a filter wants, of whatever deliveries, latest first. */
export async function readLastAttempts(
  scanner: Scanner, topic: string, query: TimeBounds & AttemptFilter & { readonly limit: number }, account: ScanAccount,
): Promise<DeliverySummary[]> {
  const ranges = await attemptRanges(scanner, topic, query)
  const read = createAttemptReader(query)
  account.begin(ranges)
  const found: DeliverySummary[] = []
  for (const range of ranges) {
    let foundHere = 0
    reading: for await (const records of readBackwards(scanner, range)) {
      account.took(records)
      for (const record of records) {
        const attempt = read(record)
        if (attempt === 'unreadable') account.unreadableOne()
        else if (attempt !== null) {
          found.push({ ...attempt, recordedAt: record.timestamp })
          foundHere += 1
        }
        if (foundHere >= query.limit) break reading
      }
    }
  }
  return found.sort((a, b) => b.recordedAt - a.recordedAt).slice(0, query.limit)
}
