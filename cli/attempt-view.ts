import { formatDuration } from '../shared/domain/duration.ts'
import type { Attempt } from '../shared/domain/delivery.ts'
import { decodeAttempt } from '../shared/records/attempt-codec.ts'
import { isRecordError } from '../shared/records/record-error.ts'
import { printable } from './table-text.ts'

/** An attempt as it is printed as JSON: times in ISO. */
export type AttemptView = Omit<Attempt, 'startedAt' | 'nextDueAt'> & { readonly startedAt: string; readonly nextDueAt: string | null }

const iso = (at: number): string => new Date(at).toISOString()

export const viewOfAttempt = (attempt: Attempt): AttemptView =>
  ({ ...attempt, startedAt: iso(attempt.startedAt), nextDueAt: attempt.nextDueAt === null ? null : iso(attempt.nextDueAt) })

/** What came of it, in a few words. `nowMs` epoch ms. */
export function describeOutcome(
  { state, status, error, reason, nextDueAt }: Pick<Attempt, 'state' | 'status' | 'error' | 'reason' | 'nextDueAt'>,
  now: number,
): string {
  const what = status === null ? (error ?? '') : `HTTP ${status}`
  if (state === 'success') return `delivered${what ? ` (${what})` : ''}`
  if (state !== 'waiting') return [state, [what, reason].filter(Boolean).join(', ')].filter(Boolean).join(': ')
  if (nextDueAt === null) return `${what}, waits`
  return `${what}, again in ${formatDuration(Math.max(0, Math.round((nextDueAt - now) / 1000)) * 1000)}`
}

/** One line for people. */
export function lineOfAttempt(attempt: Attempt, now: number): string {
  const { startedAt, deliveryId, eventType, replay, endpointKey } = attempt
  const number = `attempt ${attempt.attempt}${replay > 0 ? ` of replay ${replay}` : ''}`
  return printable([
    iso(startedAt).slice(11, 23), deliveryId, eventType, endpointKey, number, describeOutcome(attempt, now),
  ].join('  '))
}

/** An attempt, or that it cannot be read: of a kind only a newer posthouse knows, or no record of ours. */
export function readAttempt(value: Buffer): Attempt | 'unreadable' {
  try {
    return decodeAttempt(value)
  } catch (error) {
    if (!isRecordError(error)) throw error
    return 'unreadable'
  }
}
