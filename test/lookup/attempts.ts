import { encodeAttempt } from '../../shared/records/attempt-codec.ts'
import type { Attempt } from '../../shared/domain/delivery.ts'
import { openScanner, type Scanner } from '../../shared/kafka/scanner.ts'
import { produceTo, testConnection, type Cleanup } from '../support/kafka.ts'

export function scannerFor(t: Cleanup): Scanner {
  const scanner = openScanner({ connection: testConnection() })
  t.after(() => scanner.close())
  return scanner
}

/** An attempt that failed and waits for the next, unless told otherwise. */
export function attempt(deliveryId: string, overrides: Partial<Attempt> = {}): Attempt {
  return {
    deliveryId, replay: 0, attempt: 1, subscriptionId: 'sub_a', endpointKey: 'ep_a', tenant: null, eventId: `evt-of-${deliveryId}`, eventType: 'order.created',
    startedAt: 1_700_000_000_000, durationMs: 5, status: 503, failureClass: 'retriable', error: 'http_503', excerpt: null, state: 'waiting', reason: null,
    nextDueAt: 1_700_000_060_000, ...overrides,
  }
}

export const success: Partial<Attempt> = { status: 200, failureClass: null, error: null, state: 'success', nextDueAt: null }
export const dead: Partial<Attempt> = { state: 'dlq', reason: 'exhausted', nextDueAt: null }

/** Writes attempts in this order, each where its endpoint's key belongs, or in the partition given. */
export async function writeAttempts(topic: string, attempts: readonly (Attempt & { readonly partition?: number })[]): Promise<void> {
  await produceTo(topic, attempts.map(({ partition, ...one }) =>
    ({ key: one.endpointKey, value: encodeAttempt(one), ...(partition === undefined ? {} : { partition }) })))
}
