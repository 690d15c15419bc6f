import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { readEvent, type DoorOptions } from '../shared/records/event-door.ts'
import type { Event } from '../shared/domain/event.ts'
import type { ProducedRecord } from '../shared/kafka/produced-record.ts'
import { CliError } from './cli-error.ts'

/** A record of an events topic, and the event the router will make of it. */
export type OutgoingEvent = { readonly record: ProducedRecord; readonly event: Event }

export type EventFields = {
  readonly id?: string
  readonly type?: string
  readonly tenant?: string
  readonly key?: string
}

/**
 * The values in a file: the whole of it when it is one JSON text, else each line that is not blank (JSON Lines). Bytes stay as they are.
 * @throws CliError `failed`, naming the first line that is not JSON
 */
export function splitEvents(bytes: Buffer, source: string): readonly Buffer[] {
  // Read as text and written again it would be other bytes, and valid.
  if (!isUtf8(bytes)) throw new CliError('failed', `${source} is not UTF-8; nothing was sent`, 'JSON is UTF-8 (RFC 8259): convert it first')
  const text = bytes.toString('utf8')
  if (text.trim() === '') throw new CliError('failed', `${source} is empty`, 'give one event as JSON, or one a line')
  if (isJson(text)) return [Buffer.from(text.trim())]
  const lines = text.split('\n').map((line, index) => ({ line: line.trim(), number: index + 1 })).filter(({ line }) => line !== '')
  const wrong = lines.find(({ line }) => !isJson(line))
  if (wrong) {
    throw new CliError(
      'failed', `${source}, line ${wrong.number}, is not JSON; nothing was sent`, 'give one event as JSON, or one a line',
    )
  }
  return lines.map(({ line }) => Buffer.from(line))
}

/** An event in the usual form around `data`, which must be JSON text and goes in untouched. */
export function wrapData(data: string, { id, type, tenant }: EventFields): Buffer {
  if (type === undefined) throw new CliError('usage', '--data needs --type, as data does not say what happened')
  if (!isJson(data)) throw new CliError('usage', '--data is not JSON')
  const head = {
    id: id ?? `evt_${randomUUID().replaceAll('-', '')}`, type, created: Math.floor(Date.now() / 1000),
    ...(tenant === undefined ? {} : { tenant }),
  }
  return Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":${data}}`)
}

/**
 * Records for `topic`, each looked at as the router will: what it would refuse is not sent. Fields given beside the value go into
 * headers, which win over what the value says. @throws CliError `failed`, naming the event and the reason
 */
export function toOutgoing(
  values: readonly Buffer[], fields: EventFields, topic: string, door: DoorOptions,
): readonly OutgoingEvent[] {
  const { id, type, tenant, key = null } = fields
  const headers = Object.entries({ 'event-id': id, 'event-type': type, 'event-tenant': tenant })
    .flatMap(([name, value]) => (value === undefined ? [] : [{ name, value: Buffer.from(value) }]))
  return values.map((value, index) => {
    const read = readEvent(
      { topic, partition: 0, offset: 0, timestamp: 0, key: key === null ? null : Buffer.from(key), value, headers }, door,
    )
    if (read.kind === 'event') return { record: { topic, key, value, headers }, event: read.event }
    const reason = read.kind === 'rejected' ? read.detail : read.reason
    throw new CliError('failed', `event ${index + 1} of ${values.length} would be refused: ${reason}; nothing was sent`,
      'give --id and --type, or name the fields with POSTHOUSE_EVENT_ID_FIELD and POSTHOUSE_EVENT_TYPE_FIELD')
  })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
