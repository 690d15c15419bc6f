import type { DeadLetter } from '../domain/delivery.ts'
import { partitionOf } from '../kafka/partitioner.ts'
import type { ScanRange, ScannedRecord, Scanner } from '../kafka/scanner.ts'
import { decodeDeadLetter } from '../records/dead-letter-codec.ts'
import { isRecordError } from '../records/record-error.ts'
import { createKeyMatcher, createMatcher, factsFromHeaders, factsOf, type DeadLetterFacts, type DeadLetterFilter } from './filter.ts'
import { createKeyIndex, type KeyIndex, type Place, type Standing } from './key-index.ts'
import { parseDeadLetterKey, type DeadLetterId } from './key.ts'
import { readClearing, type Clearing } from './tombstone.ts'

export type DeadLetterSource = { readonly scanner: Scanner; readonly topic: string }

/** What the first pass found of a key that was asked for by name. */
export type NamedKey = {
  readonly id: DeadLetterId
  /** Its last record that is no tombstone; null: compaction has taken it. */
  place: Place | null
  /** The tombstone behind it; null: there is none. `at`: epoch ms. */
  cleared: { readonly at: number; readonly clearing: Clearing | null } | null
}

/** What is in `dlq`, up to an end that was fixed when it was read. */
export type DeadLetterIndex = {
  readonly keys: KeyIndex
  /** By key; empty unless the filter names ids. */
  readonly named: ReadonlyMap<string, NamedKey>
  /** Whether only named keys were taken in. */
  readonly isOfNamed: boolean
}

export type FoundDeadLetter = Place & {
  readonly id: DeadLetterId
  /** Epoch ms, broker time. */
  readonly writtenAt: number
  readonly facts: DeadLetterFacts
  readonly standing: Exclude<Standing, { kind: 'outdated' }>
  /** `newer`: written by a newer posthouse, which is no fault of the record. Bytes of the body are the record's own. */
  readonly content:
    | { readonly kind: 'readable'; readonly deadLetter: DeadLetter }
    | { readonly kind: 'newer' | 'unreadable'; readonly detail: string }
}

export type ReadProgress = (records: number, ofRecords: number) => void

/** Small, so that what is fetched, decoded and not yet collected stays far below what a small machine has. */
const fetchBytes = 512 * 1024

/**
 * The first pass: the last record of each key, as a tombstone may come anywhere behind its dead letter. Nothing that is written after
 * it began counts.
 * `isOneLook`: where all ids are whole keys, only their partitions are read; a later replay of theirs is then not noticed.
 */
export async function indexDeadLetters(
  { scanner, topic }: DeadLetterSource,
  filter: Pick<DeadLetterFilter, 'ids'> = {},
  { signal, onProgress, isOneLook = false }: { readonly signal?: AbortSignal; readonly onProgress?: ReadProgress; readonly isOneLook?: boolean } = {},
): Promise<DeadLetterIndex> {
  const keys = createKeyIndex()
  const named = new Map<string, NamedKey>()
  const { ids } = filter
  const isNamed = createKeyMatcher(filter)
  const isRelated = createKeyMatcher(ids === undefined ? {} : { ids: ids.map((id) => parseDeadLetterKey(id)?.deliveryId ?? id) })
  const partitions = ids !== undefined && isOneLook ? partitionsOf(ids, await scanner.partitionCount(topic)) : null
  const ranges = await scanner.ranges(topic, partitions === null ? {} : { partitions })
  const total = totalOf(ranges)
  let count = 0
  for (const range of ranges) {
    for await (const records of scanner.read(range, { maxBytes: fetchBytes })) {
      signal?.throwIfAborted()
      for (const { partition, offset, key, value, headers, timestamp } of records) {
        const isTombstone = value === null
        if (ids === undefined) {
          keys.apply({ partition, offset, key, isTombstone })
          continue
        }
        const text = key?.toString() ?? ''
        if (!isRelated(text)) continue
        keys.apply({ partition, offset, key, isTombstone })
        const id = parseDeadLetterKey(text)
        if (id === null || !isNamed(text)) continue
        const known = named.get(text) ?? { id, place: null, cleared: null }
        named.set(text, known)
        if (!isTombstone) known.place = { partition, offset }
        known.cleared = isTombstone ? { at: timestamp, clearing: readClearing(headers) } : null
      }
      count += records.length
      onProgress?.(count, total)
    }
  }
  return { keys, named, isOfNamed: ids !== undefined }
}

/** null: some id is a delivery's, and its dead letters may be anywhere. */
function partitionsOf(ids: readonly string[], count: number): readonly number[] | null {
  if (ids.some((id) => parseDeadLetterKey(id) === null)) return null
  return [...new Set(ids.map((id) => partitionOf(Buffer.from(id), count)))].sort((a, b) => a - b)
}

/**
 * The second pass: dead letters that the filter lets through, by partition and offset, some at a time; those that were cleared only
 * with `includesCleared`. `after`: begins behind that place. About 0.5 MiB of them are in memory, or one.
 */
export async function* readDeadLetters(
  { scanner, topic }: DeadLetterSource,
  index: DeadLetterIndex,
  filter: DeadLetterFilter,
  { includesCleared = false, after, signal, onProgress }: {
    readonly includesCleared?: boolean
    readonly after?: Place
    readonly signal?: AbortSignal
    readonly onProgress?: ReadProgress
  } = {},
): AsyncGenerator<readonly FoundDeadLetter[], void, void> {
  const isWanted = createMatcher(filter)
  const ranges = rangesOf(topic, index, includesCleared, after)
  const total = totalOf(ranges)
  let before = 0
  for (const range of ranges) {
    for await (const records of scanner.read(range, { maxBytes: fetchBytes })) {
      signal?.throwIfAborted()
      const found = records.flatMap((record) => {
        const standing = record.value === null ? null : index.keys.standingOf(record)
        if (standing === null || standing.kind === 'outdated' || (standing.kind === 'cleared' && !includesCleared)) return []
        const letter = openDeadLetter(record, standing)
        return letter !== null && isWanted(letter.facts) ? [letter] : []
      })
      onProgress?.(before + (records.at(-1)?.offset ?? range.from) + 1 - range.from, total)
      if (found.length > 0) yield found
    }
    before += range.to - range.from
  }
}

function rangesOf(topic: string, index: DeadLetterIndex, includesCleared: boolean, after: Place | undefined): ScanRange[] {
  return [...index.keys.ranges(includesCleared ? 'all' : 'open')]
    .map(([partition, { first, last }]) => ({ topic, partition, from: first, to: last + 1 }))
    .filter(({ partition }) => after === undefined || partition >= after.partition)
    .map((range) => (range.partition === after?.partition ? { ...range, from: Math.max(range.from, after.offset + 1) } : range))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.partition - b.partition)
}

const totalOf = (ranges: readonly ScanRange[]): number => ranges.reduce((sum, { from, to }) => sum + to - from, 0)

/** A record of `dlq` that is known to be a dead letter; null: its key is none of ours. */
export function openDeadLetter(record: ScannedRecord, standing: FoundDeadLetter['standing']): FoundDeadLetter | null {
  const { key, value, headers, partition, offset, timestamp: writtenAt } = record
  const id = key && parseDeadLetterKey(key.toString())
  if (id === null || value === null) return null
  try {
    const deadLetter = decodeDeadLetter(value)
    // By its key it is cleared, whatever it says itself.
    return { id, partition, offset, writtenAt, standing, facts: { ...factsOf(deadLetter), ...id }, content: { kind: 'readable', deadLetter } }
  } catch (error) {
    if (!isRecordError(error)) throw error
    const kind = error.kind === 'unreadable' ? 'unreadable' : 'newer'
    return { id, partition, offset, writtenAt, standing, facts: factsFromHeaders(id, headers, writtenAt), content: { kind, detail: error.message } }
  }
}
