import type { Origin, RecordHeader } from './delivery.ts'

/** One accepted event, as the router passes it on. */
export type Event = {
  readonly id: string
  readonly type: string
  readonly tenant: string | null
  /** `ce_source` where the producer gave one, else the input topic: part of the delivery id. */
  readonly source: string
  /** JSON text, the request body of every attempt. */
  readonly body: Buffer
  readonly origin: Origin
  readonly sourceKey: Buffer | null
  readonly sourceHeaders: readonly RecordHeader[]
}

/** Largest request body, bytes. */
export const maxBodyBytes = 512 * 1024
/** Largest body together with the names and values of the kept source headers, bytes: it must fit a dead letter too. */
export const maxBodyAndHeadersBytes = 640 * 1024
/** How much of a refused record's value is kept in `rejected`, bytes. */
export const maxRejectedBytes = 512 * 1024
/** Longest event type and longest pattern, characters. */
export const maxEventTypeLength = 256
/** Types of our own events; producers may not use them, and `*` does not match them. */
export const ownTypePrefix = 'posthouse.'

const printableAscii = /^[\u0021-\u007e]+$/

/**
 * Says why an event type is refused, or null. It travels in a header, where anything but printable ASCII is either lost
 * or read differently by each receiver (RFC 9110 section 5.5).
 */
export function checkEventType(type: string): string | null {
  if (type === '') return 'the event type is empty'
  if (type.length > maxEventTypeLength) return `the event type is longer than ${maxEventTypeLength} characters`
  if (!printableAscii.test(type)) return 'the event type contains something other than printable ASCII without spaces'
  if (type.startsWith(ownTypePrefix)) return `event types beginning with ${ownTypePrefix} are reserved`
  return null
}
