import type { DeadLetter, RecordHeader } from '../domain/delivery.ts'

/** Epoch ms in broker time, decimal: the earliest time of the next attempt. */
export const dueHeader = 'posthouse-due'
/** Times the delivery was parked for holding too much of the window. */
export const parkedHeader = 'posthouse-parked'

type TextHeader = { readonly name: string; readonly value: string }

const dueForm = /^\d{1,15}$/
const parkedForm = /^\d{1,4}$/

/** Headers of a record that waits. `dueAt` whole ms. */
export function waitingHeaders(dueAt: number, timesParked: number): TextHeader[] {
  const headers = [{ name: dueHeader, value: String(dueAt) }]
  if (timesParked > 0) headers.push({ name: parkedHeader, value: String(timesParked) })
  return headers
}

/** The due time, epoch ms; null where there is none that can be read. Of repeated ones the last counts. */
export function readDueAt(headers: readonly RecordHeader[]): number | null {
  const text = lastValue(headers, dueHeader)
  return text !== null && dueForm.test(text) ? Number(text) : null
}

/** 0 where there is none that can be read. */
export function readParked(headers: readonly RecordHeader[]): number {
  const text = lastValue(headers, parkedHeader)
  return text !== null && parkedForm.test(text) ? Number(text) : 0
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
    { name: 'posthouse-origin', value: `${origin.topic}/${origin.partition}/${origin.offset}` },
  ]
  if (delivery.tenant !== null) headers.push({ name: 'posthouse-tenant', value: delivery.tenant })
  if (lastStatus !== null) headers.push({ name: 'posthouse-status', value: String(lastStatus) })
  if (lastError !== null) headers.push({ name: 'posthouse-error', value: lastError })
  return headers
}

export function lastValue(headers: readonly RecordHeader[], name: string): string | null {
  return headers.findLast((header) => header.name === name)?.value.toString() ?? null
}
