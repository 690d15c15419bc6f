import type { DeadLetter, RecordHeader } from '../domain/delivery.ts'

/** Epoch ms in broker time, decimal: the earliest time of the next attempt. */
export const dueHeader = 'posthouse-due'
/** Times the delivery was parked for holding too much of the window. */
export const parkedHeader = 'posthouse-parked'

type TextHeader = { readonly name: string; readonly value: string }

const dueForm = /^\d{1,15}$/
const parkedForm = /^\d{1,9}$/
/** Nothing depends on more: waits stop growing long before. */
const mostParked = 1000
const originForm = /^([^/]+)\/(\d{1,10})\/(\d{1,15})$/

/** Headers of a record that waits. `dueAt` goes up to whole ms: never early. */
export function waitingHeaders(dueAt: number, timesParked: number): TextHeader[] {
  const headers = [{ name: dueHeader, value: String(Math.ceil(dueAt)) }]
  if (timesParked > 0) headers.push({ name: parkedHeader, value: String(timesParked) })
  return headers
}

/** The due time, epoch ms; null where there is none that can be read. Of repeated ones the last counts. */
export function readDueAt(headers: readonly RecordHeader[]): number | null {
  const text = lastValue(headers, dueHeader)
  return text !== null && dueForm.test(text) ? Number(text) : null
}

/** Times parked, at most 1000; 0 where there is none that can be read. */
export function readParked(headers: readonly RecordHeader[]): number {
  const text = lastValue(headers, parkedHeader)
  return text !== null && parkedForm.test(text) ? Math.min(Number(text), mostParked) : 0
}

/** A dead letter's main facts as text, for any Kafka tool. */
export function deadLetterHeaders({ delivery, reason, endpointKey, lastStatus, lastError }: DeadLetter): TextHeader[] {
  const { origin } = delivery
  const headers = [
    { name: 'posthouse-delivery', value: delivery.id },
    { name: 'posthouse-replay', value: String(delivery.replay) },
    { name: 'posthouse-event', value: delivery.eventId },
    { name: 'posthouse-type', value: delivery.eventType },
    { name: 'posthouse-subscription', value: delivery.subscriptionId },
    { name: 'posthouse-endpoint', value: endpointKey },
    { name: 'posthouse-reason', value: reason },
    { name: 'posthouse-attempts', value: String(delivery.attemptsMade) },
    originHeader(origin),
  ]
  if (delivery.tenant !== null) headers.push({ name: 'posthouse-tenant', value: delivery.tenant })
  if (lastStatus !== null) headers.push({ name: 'posthouse-status', value: String(lastStatus) })
  if (lastError !== null) headers.push({ name: 'posthouse-error', value: lastError })
  return headers
}

type Position = { readonly topic: string; readonly partition: number; readonly offset: number }

/** Where the record came from that this one was made of: `<topic>/<partition>/<offset>`; no topic has a slash in its name. */
export function originHeader({ topic, partition, offset }: Position): TextHeader {
  return { name: 'posthouse-origin', value: `${topic}/${partition}/${offset}` }
}

/** null where there is none that can be read. */
export function readOrigin(headers: readonly RecordHeader[]): Position | null {
  const [, topic, partition, offset] = originForm.exec(lastValue(headers, 'posthouse-origin') ?? '') ?? []
  return topic === undefined ? null : { topic, partition: Number(partition), offset: Number(offset) }
}

/** The last header of a name as text: ours are written behind those that a record brought along. */
export function lastValue(headers: readonly RecordHeader[], name: string): string | null {
  return headers.findLast((header) => header.name === name)?.value.toString() ?? null
}
