import type { Message } from 'kafkajs'

export type ProducedHeader = { readonly name: string; readonly value: Buffer | string }

/** A record to be written. Without `partition` its key chooses one, as in every Kafka client; without a key it goes anywhere. */
export type ProducedRecord = {
  readonly topic: string
  readonly key: Buffer | string | null
  /** null is a tombstone. */
  readonly value: Buffer | null
  readonly headers?: readonly ProducedHeader[]
  readonly partition?: number
}

/** Attributes, deltas and lengths of a record in a batch, at most. */
const recordOverheadBytes = 36
const headerOverheadBytes = 10

/** Bytes of a record in a batch, never less than the true number: key, value, headers and their framing. */
export function sizeOfRecord(record: ProducedRecord): number {
  let bytes = recordOverheadBytes + (record.value?.length ?? 0)
  if (record.key !== null) bytes += Buffer.byteLength(record.key)
  for (const { name, value } of record.headers ?? []) {
    bytes += headerOverheadBytes + Buffer.byteLength(name) + Buffer.byteLength(value)
  }
  return bytes
}

/** As kafkajs takes it. It keeps headers by name: those of one name stay in order, but stand together. */
export function toMessage({ key, value, headers }: ProducedRecord): Message {
  if (!headers || headers.length === 0) return { key, value }
  // Without a prototype, so that a header named `__proto__` is one like any other.
  const byName = Object.create(null) as Record<string, (Buffer | string)[]>
  for (const { name, value } of headers) (byName[name] ??= []).push(value)
  return { key, value, headers: byName }
}
