import { isUtf8 } from 'node:buffer'
import { maxBodyBytes } from '../domain/event.ts'
import { readField, type FieldValue } from './json-fields.ts'
import { isRecordError } from './record-error.ts'
import { isSingleObject } from './single-object.ts'
import { wireOf } from './wire.ts'

/** Why an input record is refused: short stable codes, which also label a metric. */
export const rejectReasons = [
  'not_utf8', 'byte_order_mark', 'not_json', 'too_large', 'no_schema_registry', 'unknown_schema', 'unreadable_avro',
  'bad_header', 'no_id', 'bad_id', 'no_type', 'bad_type', 'bad_tenant',
] as const
export type RejectReason = (typeof rejectReasons)[number]

/** `detail` is for people and holds nothing of the payload. */
export type Refused = { readonly reason: RejectReason; readonly detail: string }

/** What an input value says of itself; what wins over it is decided at the door. */
export type EventValue = {
  field(name: string): FieldValue
  /** Fields of the Avro Event; null where it is JSON, whose field names are the user's own. */
  readonly own: { readonly id: FieldValue; readonly type: FieldValue; readonly tenant: FieldValue } | null
  /** The request body. What was read as JSON is the body already, byte for byte, whatever its id and type. */
  bodyOf(id: string, type: string): Buffer
}

type AvroEvent = { readonly id: string; readonly type: string; readonly created: number; readonly tenant: string | null; readonly data: string }

const avroEvent = wireOf('event')
const confluentMarker = 0x00

/** Decodes an input value as its first bytes say: Confluent's wire format, Avro's single-object encoding, else JSON text. */
export function readEventValue(value: Buffer): EventValue | Refused {
  if (value[0] === confluentMarker) {
    return refused('no_schema_registry', 'the value is in Confluent\'s wire format, which this version cannot read: write JSON, or Avro in single-object encoding')
  }
  if (isSingleObject(value)) return readAvro(value)
  if (value.length > maxBodyBytes) return refused('too_large', `the value has ${value.length} bytes, the limit is ${maxBodyBytes}`)
  if (hasByteOrderMark(value)) return refused('byte_order_mark', 'the value begins with a byte order mark, which JSON text must not (RFC 8259 section 8.1)')
  if (!isUtf8(value)) return refused('not_utf8', 'the value is not UTF-8 (RFC 8259 section 8.1)')
  const text = value.toString('utf8')
  const json = parseJson(text, 'the value')
  if ('reason' in json) return json
  return { field: (name) => readField(text, json.parsed, name), own: null, bodyOf: () => value }
}

function readAvro(value: Buffer): EventValue | Refused {
  let event: AvroEvent
  try {
    event = avroEvent.read(value) as AvroEvent
  } catch (error) {
    if (!isRecordError(error)) throw error
    if (error.kind === 'unknown_schema') return refused('unknown_schema', 'the value\'s schema is not posthouse.Event, and no other is known')
    return refused('unreadable_avro', error.message)
  }
  const { created, data } = event
  if (data.startsWith('\ufeff')) return refused('byte_order_mark', 'the field data begins with a byte order mark')
  const json = parseJson(data, 'the field data')
  if ('reason' in json) return json
  return {
    field: () => ({ kind: 'none' }),
    own: { id: textField(event.id), type: textField(event.type), tenant: event.tenant === null ? { kind: 'none' } : textField(event.tenant) },
    bodyOf: (id, type) => Buffer.from(`{"id":${JSON.stringify(id)},"type":${JSON.stringify(type)},"created":${created},"data":${data}}`),
  }
}

/** Only whether it parses, and where it stops: V8's message repeats the payload. */
function parseJson(text: string, what: string): { readonly parsed: unknown } | Refused {
  try {
    return { parsed: JSON.parse(text) as unknown }
  } catch (error) {
    if (text.trim() === '') return refused('not_json', `${what} is empty`)
    const position = /at position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    return refused('not_json', `${what} is not JSON text${position === undefined ? '' : ` (character ${position})`}`)
  }
}

function hasByteOrderMark(value: Uint8Array): boolean {
  return value[0] === 0xef && value[1] === 0xbb && value[2] === 0xbf
}

const textField = (text: string): FieldValue => ({ kind: 'text', text })

export function refused(reason: RejectReason, detail: string): Refused {
  return { reason, detail }
}
