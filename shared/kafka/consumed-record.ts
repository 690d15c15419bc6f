import type { IHeaders, KafkaMessage } from 'kafkajs'

/** A record as it was read. Offsets are safe integers (2^53 records in a partition are out of reach). */
export type ConsumedRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** In order of first appearance; a repeated name has one entry per value. */
  readonly headers: readonly { readonly name: string; readonly value: Buffer }[]
  /** Epoch ms: the broker's append time in topics of LogAppendTime, else the producer's. */
  readonly timestamp: number
}

/** What one record in hand weighs beside its own bytes: objects, queue places, decoded fields. */
const overheadBytes = 1024

/** Bytes that holding this record costs, for the bound on memory. */
export function weightOf(record: ConsumedRecord): number {
  let weight = overheadBytes + (record.key?.length ?? 0) + (record.value?.length ?? 0)
  for (const { name, value } of record.headers) weight += name.length + value.length
  return weight
}

/**
 * kafkajs's message as our record.
 * Key, value and headers are copied: kafkajs hands out slices, and one record kept for long would keep its whole fetch response.
 */
export function toConsumedRecord(topic: string, partition: number, message: KafkaMessage): ConsumedRecord {
  return {
    topic,
    partition,
    offset: Number(message.offset),
    key: message.key ? Buffer.from(message.key) : message.key,
    value: message.value ? Buffer.from(message.value) : message.value,
    headers: toHeaderList(message.headers),
    timestamp: Number(message.timestamp),
  }
}

/** In order of first appearance; copies. */
export function toHeaderList(headers: IHeaders | undefined): { name: string; value: Buffer }[] {
  const list: { name: string; value: Buffer }[] = []
  for (const name of Object.keys(headers ?? {})) {
    const values = headers?.[name]
    for (const value of Array.isArray(values) ? values : [values]) {
      // A null header value is legal in Kafka; an empty one is the nearest that survives being written again.
      list.push({ name, value: Buffer.from(value ?? '') })
    }
  }
  return list
}
