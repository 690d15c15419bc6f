import { historyBounds } from '../domain/attempt-history.ts'
import { deadState } from '../domain/decide.ts'
import { deadLetterReasons, type DeadLetterReason } from '../domain/delivery.ts'
import { inWords } from './words.ts'

export type DeadLetterTerms = {
  readonly topic: string
  readonly key: string
  readonly retentionMs: number
  readonly kept: readonly string[]
  readonly notKept: readonly string[]
  readonly reasons: readonly { readonly reason: DeadLetterReason; readonly state: string; readonly meaning: string }[]
  readonly replay: readonly string[]
}

const meanings: Readonly<Record<DeadLetterReason, string>> = {
  exhausted: 'every attempt failed',
  permanent_failure: 'an answer or an error that no further attempt would change',
  expired: 'too old to be tried again',
  disabled: 'the subscription was disabled',
  gone: 'the endpoint answered 410',
  internal: 'a fault of posthouse, again and again on this delivery',
}

export function deadLettersOf({ topic, retentionMs }: { readonly topic: string; readonly retentionMs: number }): DeadLetterTerms {
  return {
    topic, retentionMs,
    key: '<delivery id>.<replay number>',
    kept: [
      'the body, byte for byte, with key and headers of the source record and its topic, partition and offset',
      `the last ${historyBounds.attempts} attempts: time, duration, status, class, error, up to ${historyBounds.excerptBytes} bytes of the response`,
      'the last status and error, and the reason',
      'the subscription as it was: host, event types, state, signature scheme, names of its headers',
      'the main facts as text headers of the record, for any Kafka tool',
    ],
    notKept: ['secrets', 'values of custom headers', 'the path and query of the URL', 'what would not fit into a record: excerpts go first, and it says so'],
    reasons: deadLetterReasons.map((reason) => ({ reason, state: deadState(reason), meaning: meanings[reason] })),
    replay: [
      'by hand, `posthouse dlq replay`: chosen by endpoint, subscription, tenant, event type, reason, status or time; previewed first',
      'the same delivery id and the same bytes, signed anew with the present secrets, sent to the present URL, under the present policy',
      'attempts begin at 1; `X-Webhook-Replay` has the number of the replay',
      'replay n writes the delivery with n + 1 and deletes the key of n only: if it fails again there is a new dead letter, and none is lost',
      'killed in the middle and run again it repeats at most one batch, under the same ids and numbers',
      `what is neither replayed nor discarded is deleted after ${inWords(retentionMs)}`,
    ],
  }
}
