import type { RecordHeader } from '../domain/delivery.ts'
import { maxRejectedBytes } from '../domain/event.ts'
import { originHeader } from './record-headers.ts'

/** A record as it was read, from whichever topic. */
export type SourceRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly RecordHeader[]
}

export type RejectedRecord = {
  readonly topic: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly { readonly name: string; readonly value: Buffer | string }[]
}

const maxDetailCharacters = 500
/** With the value these stay below Kafka's default limit of about 1 MB, whatever limit the source topic has. */
const maxKeyBytes = 64 * 1024
const maxHeadersBytes = 256 * 1024
const headerOverheadBytes = 16

/**
 * The record for the `rejected` topic: key, value and headers as they were, the value cut at 512 KiB, then our headers:
 * `posthouse-reason` (a short stable code), `posthouse-detail`, `posthouse-origin`, and what was cut. Ours come last, so that of
 * repeated names ours count (a record of our own topics, or a producer's joke, may bring the same).
 */
export function rejectedRecord({ topic, record, reason, detail }: {
  readonly topic: string
  readonly record: SourceRecord
  readonly reason: string
  readonly detail: string
}): RejectedRecord {
  const { key, value } = record
  const kept = headersThatFit(record.headers)
  const headers: { name: string; value: Buffer | string }[] = [
    ...kept,
    { name: 'posthouse-reason', value: reason },
    { name: 'posthouse-detail', value: detail.slice(0, maxDetailCharacters) },
    originHeader(record),
  ]
  const isCut = value !== null && value.length > maxRejectedBytes
  const isKeyCut = key !== null && key.length > maxKeyBytes
  if (isCut) headers.push({ name: 'posthouse-original-bytes', value: String(value.length) })
  if (isKeyCut) headers.push({ name: 'posthouse-original-key-bytes', value: String(key.length) })
  if (kept.length < record.headers.length) {
    headers.push({ name: 'posthouse-headers-left-out', value: String(record.headers.length - kept.length) })
  }
  return {
    topic,
    key: isKeyCut ? key.subarray(0, maxKeyBytes) : key,
    value: isCut ? value.subarray(0, maxRejectedBytes) : value,
    headers,
  }
}

function headersThatFit(headers: readonly RecordHeader[]): RecordHeader[] {
  let left = maxHeadersBytes
  return headers.filter(({ name, value }) => {
    const bytes = Buffer.byteLength(name) + value.length + headerOverheadBytes
    if (bytes > left) return false
    left -= bytes
    return true
  })
}
