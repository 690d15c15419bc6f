import type { AdminClient } from '../kafka/client.ts'
import { readCommitted, type Committed } from '../kafka/committed.ts'
import { partitionOf } from '../kafka/partitioner.ts'
import type { Scanner, ScanRange } from '../kafka/scanner.ts'
import { readDueAt } from '../records/record-headers.ts'
import type { ScanAccount } from './scan-account.ts'

/** A topic that deliveries wait in, and the group that takes them out. */
export type WaitingPlace = { readonly topic: string; readonly groupId: string }

/** What waits for one endpoint in one topic, by the key it was written with: the URL of its subscription may have changed since. */
export type Waiting = {
  readonly topic: string
  readonly records: number
  /** The earliest due time among them, epoch ms; null in `deliveries`, where what is there is due. */
  readonly nextDueAt: number | null
}

/** More than this is not read through to be counted: 200,000 records, or 256 MiB. */
const mostRecords = 200_000
const mostBytes = 256 * 1024 * 1024

/**
 * What waits for each endpoint, or for the one of `endpointKey`: records that their group has not committed as done, those in flight
 * among them. A delivery on its way from one tier to the next may be counted in both. What there is too much of to be read is left
 * out, and `account` says so: the counts are then at least so many.
 */
export async function countWaiting(
  sources: { readonly scanner: Scanner; readonly admin: Pick<AdminClient, 'fetchOffsets'> },
  places: readonly WaitingPlace[], { endpointKey, maxRecords = mostRecords }: { readonly endpointKey?: string; readonly maxRecords?: number },
  account: ScanAccount,
): Promise<Map<string, readonly Waiting[]>> {
  const { scanner, admin } = sources
  const counts = new Map<string, Map<string, { records: number; nextDueAt: number | null }>>()
  let bytes = 0

  const isTooMuch = (): boolean => account.records >= maxRecords || bytes >= mostBytes
  const leaveRestOut = (): void => account.leaveOut(`what waits beyond the first ${account.records} records that were read`)

  function add(topic: string, key: string, dueAt: number | null): void {
    const ofKey = counts.get(key) ?? new Map<string, { records: number; nextDueAt: number | null }>()
    counts.set(key, ofKey)
    const waiting = ofKey.get(topic) ?? { records: 0, nextDueAt: null }
    waiting.records += 1
    if (dueAt !== null) waiting.nextDueAt = Math.min(waiting.nextDueAt ?? dueAt, dueAt)
    ofKey.set(topic, waiting)
  }

  async function count(range: ScanRange, committed: Committed | undefined): Promise<void> {
    for await (const records of scanner.read(range)) {
      if (isTooMuch()) return leaveRestOut()
      account.took(records)
      for (const { key, value, headers, offset } of records) {
        bytes += value?.length ?? 0
        const name = key?.toString() ?? ''
        if ((endpointKey === undefined || name === endpointKey) && !committed?.isDone(offset)) add(range.topic, name, readDueAt(headers))
      }
    }
  }

  for (const { topic, groupId } of places) {
    const partitions = endpointKey === undefined ? undefined : [partitionOf(Buffer.from(endpointKey), await scanner.partitionCount(topic))]
    const [committed, all] = await Promise.all([
      readCommitted(admin, groupId, topic), scanner.ranges(topic, partitions === undefined ? {} : { partitions }),
    ])
    const ranges = all.map((range) => ({ ...range, from: Math.min(range.to, Math.max(range.from, committed.get(range.partition)?.offset ?? 0)) }))
    account.begin(ranges)
    for (const range of ranges) {
      if (range.from < range.to && isTooMuch()) leaveRestOut()
      if (account.leftOut === null) await count(range, committed.get(range.partition))
    }
  }
  return new Map([...counts].map(([key, ofKey]) => [key, [...ofKey].map(([topic, waiting]) => ({ topic, ...waiting }))]))
}
