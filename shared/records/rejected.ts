import type { RecordHeader } from '../domain/delivery.ts'
import { maxRejectedBytes } from '../domain/event.ts'

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
const maxKeyBytes = 64 * 1024
const maxHeaderBytes = 256 * 1024

/**
 * The record for the `rejected` topic: the bytes as they were, cut at 512 KiB, with reason and position in headers. Original headers
 * stay as long as they fit. @param reason a short stable code
 */
export function rejectedRecord({ topic, record, reason, detail }: {
  readonly topic: string
  readonly record: SourceRecord
  readonly reason: string
  readonly detail: string
}): RejectedRecord {
  const { key, value } = record
  const isCut = value !== null && value.length > maxRejectedBytes
  const headers: { name: string; value: Buffer | string }[] = [
    { name: 'posthouse-reason', value: reason },
    { name: 'posthouse-detail', value: detail.slice(0, maxDetailCharacters) },
    { name: 'posthouse-origin', value: `${record.topic}/${record.partition}/${record.offset}` },
  ]
  if (isCut) headers.push({ name: 'posthouse-original-bytes', value: String(value.length) })
  let left = maxHeaderBytes
  for (const header of record.headers) {
    left -= header.name.length + header.value.length + 16
    if (left < 0) {
      headers.push({ name: 'posthouse-headers-left-out', value: 'true' })
      break
    }
    headers.push(header)
  }
  return {
    topic,
    key: key !== null && key.length > maxKeyBytes ? key.subarray(0, maxKeyBytes) : key,
    value: isCut ? value.subarray(0, maxRejectedBytes) : value,
    headers,
  }
}
