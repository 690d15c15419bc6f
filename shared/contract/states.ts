import { localWaitMs, maxInternalFailures } from '../domain/decide.ts'
import type { TerminalState } from '../domain/delivery.ts'
import { inWords } from './words.ts'

export type StateName = 'idle' | 'attempting' | 'waiting' | TerminalState

/** `on`: what happens, a stable word; `when`: the condition, for people. */
export type Exit = { readonly on: string; readonly when: string; readonly to: StateName }

export type StateRow = {
  readonly state: StateName
  readonly isTerminal: boolean
  readonly meaning: string
  readonly entryActions: readonly string[]
  readonly exits: readonly Exit[]
}

export type StateTerms = { readonly maxAttempts: number; readonly expiryMs: number; readonly topics: { readonly attempts: string; readonly dlq: string; readonly deliveries: string } }

/** The machine as decide.ts and delivery's judge.ts run it; a test drives both through every exit. */
export function statesOf({ maxAttempts, expiryMs, topics }: StateTerms): readonly StateRow[] {
  const exit = (on: string, to: StateName, when: string): Exit => ({ on, to, when })
  const record = (state: string): string => `write the record of its end to \`${topics.attempts}\`, state \`${state}\``
  const deadLetter = `write the dead letter to \`${topics.dlq}\`: payload, headers, attempts, last error, reason`
  const acknowledged = 'count it as done only when Kafka has acknowledged all of it'
  /** Before each attempt, in this order. */
  const judged: readonly Exit[] = [
    exit('deleted', 'cancelled', 'the subscription was deleted'),
    exit('tenant_differs', 'cancelled', 'the subscription is of another tenant'),
    exit('expired', 'expired', `${inWords(expiryMs)} have passed since it was routed or replayed`),
    exit('disabled', 'dlq', 'the subscription is disabled'),
    exit('gone_earlier', 'permanent_failure', 'the endpoint answered 410, after this delivery was routed'),
    exit('gone_before', 'cancelled', 'the endpoint had answered 410 before this delivery was routed'),
    exit('parked', 'waiting', 'the subscription is paused or not known yet, the endpoint asked for quiet, or it holds too much of the window: no attempt is counted'),
  ]
  const terminal = (state: TerminalState, meaning: string, entryActions: readonly string[]): StateRow =>
    ({ state, isTerminal: true, meaning, entryActions: [...entryActions, acknowledged], exits: [] })

  return [
    {
      state: 'idle', isTerminal: false, meaning: 'routed: one event for one subscription, acknowledged by Kafka, not tried yet',
      entryActions: [`write the delivery to \`${topics.deliveries}\` under its id, which never changes`],
      exits: [...judged, exit('start', 'attempting', 'none of these, and the endpoint has room')],
    },
    {
      state: 'attempting', isTerminal: false, meaning: 'one POST under one deadline',
      entryActions: ['take the subscription as it is now: URL, secrets, policy', 'number the attempt, sign it anew, send the same bytes'],
      exits: [
        exit('delivered', 'success', 'a status from 200 to 299'),
        exit('permanent', 'permanent_failure', 'a permanent failure'),
        exit('gone', 'permanent_failure', '410, unless the policy says otherwise: the endpoint is marked as gone too'),
        exit('failed', 'waiting', `a retriable or ambiguous failure, and fewer than ${maxAttempts} attempts made`),
        exit('exhausted', 'dlq', `a retriable or ambiguous failure of attempt ${maxAttempts}`),
        exit('local', 'attempting', `trouble of our own: the same attempt again after ${inWords(localWaitMs.first)} to ${inWords(localWaitMs.max)}, not counted`),
        exit('internal', 'dlq', `a fault of posthouse, ${maxInternalFailures} times on this delivery`),
      ],
    },
    {
      state: 'waiting', isTerminal: false, meaning: 'in a tier, until its due time',
      entryActions: [
        'compute the wait: backoff, health where adaptive, jitter, Retry-After as its floor',
        `write the outcome to \`${topics.attempts}\`, state \`waiting\`, and the delivery to a tier with its due time`,
      ],
      exits: [...judged, exit('timer', 'attempting', 'none of these when it is due: attempt + 1')],
    },
    terminal('success', 'the endpoint has acknowledged it', [record('success'), 'count the time it took']),
    terminal('permanent_failure', 'trying again would not help', [record('permanent_failure'), deadLetter, 'count it by reason']),
    terminal('dlq', 'given up after all attempts, or unsendable', [record('dlq'), deadLetter, 'count it by reason, which the alerts go by']),
    terminal('expired', 'too old to be tried again', [record('expired'), deadLetter, 'count it by reason']),
    terminal('cancelled', 'nobody wants it any more', [`${record('cancelled')}; no dead letter`, 'count it by reason']),
  ]
}
