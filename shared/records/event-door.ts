import { isUtf8 } from 'node:buffer'
import { checkEventType, maxBodyAndHeadersBytes, maxBodyBytes, type Event } from '../domain/event.ts'
import { fieldText, scalarOf } from './json-fields.ts'
import { isRecordError } from './record-error.ts'
import { lastValue } from './record-headers.ts'
import type { SourceRecord } from './rejected.ts'
import { wireOf } from './wire.ts'

/** Where id, type and tenant of a JSON event are found. Field names are top-level names or dotted paths. */
export type DoorOptions = {
  readonly idField: string
  readonly tenantField: string
  readonly type: { readonly kind: 'field'; readonly name: string } | { readonly kind: 'constant'; readonly value: string } | { readonly kind: 'topic' }
}

export type InputRecord = SourceRecord & { readonly timestamp: number }

export const rejectReasons = [
  'too_large', 'not_utf8', 'byte_order_mark', 'not_json', 'no_id', 'no_type', 'bad_type', 'unknown_schema', 'unreadable_avro',
] as const
export type RejectReason = (typeof rejectReasons)[number]

export type AtTheDoor =
  | { readonly kind: 'event'; readonly event: Event }
  /** A null value says nothing to deliver. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'rejected'; readonly reason: RejectReason; readonly detail: string }

type AvroEvent = { readonly id: string; readonly type: string; readonly created: number; readonly tenant: string | null; readonly data: string }
type Read = { readonly id: string | null; readonly type: string | null; readonly tenant: string | null; readonly body: Buffer }
type Refused = { readonly reason: RejectReason; readonly detail: string }

const avroEvent = wireOf('event')
const maxIdCharacters = 1024

/**
 * The door from a record of an events topic to an event: here bytes become types, and nothing behind it parses the body again.
 * The first bytes choose the decoder; CloudEvents headers (`ce_id`, `ce_type`, `ce_source`: Kafka binding, binary mode) or `event-id`,
 * `event-type`, `event-tenant` win over fields. Never throws for what a record holds.
 */
export function readEvent(record: InputRecord, options: DoorOptions): AtTheDoor {
  const { value, headers } = record
  if (value === null) return { kind: 'skipped' }
  const headersBytes = headers.reduce((sum, header) => sum + header.name.length + header.value.length, 0)
  const read = readValue(value, options, record.topic)
  if ('reason' in read) return { kind: 'rejected', ...read }
  if (read.body.length > maxBodyBytes) return rejected('too_large', `the body has ${read.body.length} bytes, the limit is ${maxBodyBytes}`)
  if (read.body.length + headersBytes > maxBodyAndHeadersBytes) {
    return rejected('too_large', `body and headers have ${read.body.length + headersBytes} bytes, the limit is ${maxBodyAndHeadersBytes}`)
  }

  const id = headerOf(record, 'ce_id', 'event-id') ?? read.id
  const type = headerOf(record, 'ce_type', 'event-type') ?? read.type
  if (id === null || id === '') return rejected('no_id', `no id in the headers ce_id or event-id, nor in the field ${options.idField}`)
  if (id.length > maxIdCharacters) return rejected('no_id', `the id has ${id.length} characters, the limit is ${maxIdCharacters}`)
  if (type === null || type === '') return rejected('no_type', 'no type in the headers ce_type or event-type, nor in the value')
  const wrong = checkEventType(type)
  if (wrong !== null) return rejected('bad_type', wrong)

  return {
    kind: 'event',
    event: {
      id, type,
      tenant: headerOf(record, 'event-tenant') ?? read.tenant,
      source: headerOf(record, 'ce_source') ?? record.topic,
      body: read.body,
      origin: { topic: record.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp },
      sourceKey: record.key,
      sourceHeaders: record.headers,
    },
  }
}

function readValue(value: Buffer, options: DoorOptions, topic: string): Read | Refused {
  if (value[0] === 0x00) return { reason: 'unknown_schema', detail: 'the value is in Confluent\'s wire format and no schema registry is configured' }
  if (value[0] === 0xc3 && value[1] === 0x01) return readAvro(value)
  if (value.length > maxBodyBytes) return { reason: 'too_large', detail: `the value has ${value.length} bytes, the limit is ${maxBodyBytes}` }
  const text = jsonTextOf(value)
  if (typeof text !== 'string') return text
  const field = (name: string): string | null => scalarOf(fieldText(text, name.split('.')))
  const { type } = options
  return {
    id: field(options.idField),
    type: type.kind === 'field' ? field(type.name) : type.kind === 'constant' ? type.value : topic,
    tenant: field(options.tenantField),
    body: value,
  }
}

function jsonTextOf(value: Buffer): string | Refused {
  if (value[0] === 0xef && value[1] === 0xbb && value[2] === 0xbf) {
    return { reason: 'byte_order_mark', detail: 'the value begins with a byte order mark, which JSON text must not have (RFC 8259 section 8.1)' }
  }
  if (!isUtf8(value)) return { reason: 'not_utf8', detail: 'the value is not UTF-8 (RFC 8259 section 8.1)' }
  const text = value.toString('utf8')
  return isJson(text) ? text : { reason: 'not_json', detail: `the value is not JSON text (${value.length} bytes)` }
}

function readAvro(value: Buffer): Read | Refused {
  try {
    const { id, type, created, tenant, data } = avroEvent.read(value) as AvroEvent
    if (!isJson(data)) return { reason: 'not_json', detail: 'the field data is not JSON text' }
    const head = `{"id":${JSON.stringify(id)},"type":${JSON.stringify(type)},"created":${created},"data":`
    return { id, type, tenant, body: Buffer.from(`${head}${data}}`) }
  } catch (error) {
    if (!isRecordError(error)) throw error
    return { reason: error.kind === 'unknown_schema' ? 'unknown_schema' : 'unreadable_avro', detail: error.message }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function headerOf(record: InputRecord, ...names: readonly string[]): string | null {
  for (const name of names) {
    const value = lastValue(record.headers, name)
    if (value !== null && value !== '') return value
  }
  return null
}

const rejected = (reason: RejectReason, detail: string): AtTheDoor => ({ kind: 'rejected', reason, detail })
