import type { RecordHeader } from '../domain/delivery.ts'
import type { ProducedHeader, ProducedRecord } from '../kafka/produced-record.ts'
import { lastValue } from '../records/record-headers.ts'
import { deadLetterKey, type DeadLetterId } from './key.ts'

/** How a dead letter came off the list. `asReplay`: the number of the replay that was made of it. */
export type Clearing = { readonly how: 'replayed'; readonly asReplay: number } | { readonly how: 'discarded' }

const howHeader = 'posthouse-cleared'
const replayHeader = 'posthouse-replay'

/** Takes a dead letter off the list, and says for as long as Kafka keeps tombstones why. */
export function tombstone(topic: string, id: DeadLetterId, clearing: Clearing): ProducedRecord {
  const headers: ProducedHeader[] = [{ name: howHeader, value: clearing.how }]
  if (clearing.how === 'replayed') headers.push({ name: replayHeader, value: String(clearing.asReplay) })
  return { topic, key: deadLetterKey(id), value: null, headers }
}

/** null where a tombstone does not say: it was written by something else. */
export function readClearing(headers: readonly RecordHeader[]): Clearing | null {
  const how = lastValue(headers, howHeader)
  if (how === 'discarded') return { how }
  const asReplay = Number(lastValue(headers, replayHeader))
  return how === 'replayed' && Number.isSafeInteger(asReplay) ? { how, asReplay } : null
}

export function describeClearing(clearing: Clearing | null): string {
  if (clearing === null) return 'cleared by a tombstone that does not say why'
  return clearing.how === 'discarded' ? 'discarded' : `replayed, as replay ${clearing.asReplay}`
}
