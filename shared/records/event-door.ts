import { isUtf8 } from 'node:buffer'
import type { RecordHeader } from '../domain/delivery.ts'
import { checkEventType, maxBodyAndHeadersBytes, maxBodyBytes, type Event } from '../domain/event.ts'
import { readEventValue, refused, type EventValue, type RejectReason, type Refused } from './event-value.ts'
import type { FieldValue } from './json-fields.ts'
import type { SourceRecord } from './rejected.ts'

/** Where id, type and tenant of a JSON event are found: top-level names or, where there are none such, paths joined by dots. */
export type DoorOptions = {
  readonly idField: string
  readonly tenantField: string
  /** Of every event that names no type in a header. */
  readonly type: { readonly kind: 'field'; readonly name: string } | { readonly kind: 'constant'; readonly value: string } | { readonly kind: 'topic' }
  /** False: source headers are read but not carried along. */
  readonly keepHeaders?: boolean
}

export type InputRecord = SourceRecord & { readonly timestamp: number }

export type AtTheDoor =
  | { readonly kind: 'event'; readonly event: Event }
  /** A null value says nothing to deliver. */
  | { readonly kind: 'skipped'; readonly reason: 'null_value' }
  | { readonly kind: 'rejected'; readonly reason: RejectReason; readonly detail: string }
  /** Not bad data: it may be readable later (a schema registry is away). The partition waits. */
  | { readonly kind: 'wait'; readonly reason: string }

/** Ids and tenants are carried in every record of a delivery, which must fit; characters. */
const maxIdLength = 1024
const maxTenantLength = 256
/** What a header costs beside its name and value, at most, in our records; bytes. */
const headerOverheadBytes = 10

/**
 * The door from a record of an events topic to an event: here bytes become types, and nothing behind it parses the body again.
 * CloudEvents headers (`ce_id`, `ce_type`, `ce_source`: Kafka binding, binary mode) or else `event-id`, `event-type`, `event-tenant`
 * win over fields; an empty header counts as none, of repeated ones the last counts. The body is JSON text whatever the headers say.
 * Never throws for what a record holds.
 */
export function readEvent(record: InputRecord, options: DoorOptions): AtTheDoor {
  if (record.value === null) return { kind: 'skipped', reason: 'null_value' }
  const value = readEventValue(record.value)
  if ('reason' in value) return { kind: 'rejected', ...value }
  const event = toEvent(record, value, options)
  return 'reason' in event ? { kind: 'rejected', ...event } : { kind: 'event', event }
}

function toEvent(record: InputRecord, value: EventValue, options: DoorOptions): Event | Refused {
  const { headers, topic } = record
  const wrongHeader = headers.find(({ name, value: bytes }) => ownHeaders.has(name) && !isUtf8(bytes))
  if (wrongHeader) return refused('bad_header', `the header ${wrongHeader.name} is not UTF-8`)

  const id = headerText(headers, 'ce_id', 'event-id') ?? fieldText(value.own?.id ?? value.field(options.idField))
  if (id === null || id === '') return refused('no_id', `there is no id in the headers ce_id and event-id nor in the field ${options.idField}`)
  if (id === undefined) return refused('bad_id', 'the id is neither a string nor a number')
  if (id.length > maxIdLength) return refused('bad_id', `the id has ${id.length} characters, the limit is ${maxIdLength}`)

  const type = headerText(headers, 'ce_type', 'event-type') ?? typeWithoutHeader(value, options, topic)
  if (type === null) return refused('no_type', 'there is no type in the headers ce_type and event-type nor in the value')
  if (type === undefined) return refused('bad_type', 'the type is neither a string nor a number')
  const wrongType = checkEventType(type)
  if (wrongType !== null) return refused('bad_type', wrongType)

  const tenant = headerText(headers, 'event-tenant') ?? fieldText(value.own?.tenant ?? value.field(options.tenantField))
  // An event whose tenant is not understood must not pass for one without a tenant.
  if (tenant === undefined) return refused('bad_tenant', 'the tenant is neither a string nor a number')
  if (tenant === '' || (tenant !== null && tenant.length > maxTenantLength)) {
    return refused('bad_tenant', `the tenant has ${tenant.length} characters: 1 to ${maxTenantLength} are allowed`)
  }

  const body = value.bodyOf(id, type)
  const sourceHeaders = options.keepHeaders === false ? [] : headers
  const tooLarge = checkSizes(body, record.key, sourceHeaders)
  if (tooLarge !== null) return tooLarge
  return {
    id, type, tenant, source: headerText(headers, 'ce_source') ?? topic, body,
    origin: { topic, partition: record.partition, offset: record.offset, timestamp: writable(record.timestamp) },
    sourceKey: record.key, sourceHeaders,
  }
}

/** Producers may stamp records with what they like, such as nanoseconds, which no record of ours could hold. */
const writable = (timestamp: number): number => Math.min(timestamp, Number.MAX_SAFE_INTEGER)

const ownHeaders: ReadonlySet<string> = new Set(['ce_id', 'ce_type', 'ce_source', 'event-id', 'event-type', 'event-tenant'])

/** The last header of the first name that has one; null where all are absent or empty. */
function headerText(headers: readonly RecordHeader[], ...names: readonly string[]): string | null {
  for (const name of names) {
    const value = headers.findLast((header) => header.name === name)?.value
    if (value && value.length > 0) return value.toString('utf8')
  }
  return null
}

/** null: absent; undefined: there, but no text. */
function fieldText(field: FieldValue): string | null | undefined {
  if (field.kind === 'text') return field.text
  return field.kind === 'none' ? null : undefined
}

function typeWithoutHeader(value: EventValue, { type }: DoorOptions, topic: string): string | null | undefined {
  if (type.kind === 'constant') return type.value
  return type.kind === 'topic' ? topic : fieldText(value.own?.type ?? value.field(type.name))
}

/** Key and headers count too: they are kept in every record of the delivery, and Kafka takes none above about 1 MB. */
function checkSizes(body: Buffer, key: Buffer | null, headers: readonly RecordHeader[]): Refused | null {
  if (body.length > maxBodyBytes) return refused('too_large', `the body has ${body.length} bytes, the limit is ${maxBodyBytes}`)
  let bytes = body.length + (key?.length ?? 0)
  for (const { name, value } of headers) bytes += Buffer.byteLength(name) + value.length + headerOverheadBytes
  if (bytes <= maxBodyAndHeadersBytes) return null
  return refused('too_large', `body, key and headers have ${bytes} bytes, the limit is ${maxBodyAndHeadersBytes}`)
}
