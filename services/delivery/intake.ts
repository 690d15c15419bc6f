import { settledKey, type Settled } from '../../shared/domain/settled.ts'
import { createWindowDuplicates, windowKey, type WindowDuplicates } from '../../shared/domain/window-duplicates.ts'
import type { TopicPartition } from '../../shared/kafka/assignment.ts'
import type { Lease } from '../../shared/kafka/partition-window.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { isRecordError } from '../../shared/records/record-error.ts'
import { readParked } from '../../shared/records/record-headers.ts'
import type { Job } from './job.ts'

/**
 * What a record turned out to be.
 * `newer`: written by a newer posthouse; never poison: the lease stays unfinished until this process is replaced.
 */
export type Intake =
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'repeat' }
  | { readonly kind: 'attached' }
  | { readonly kind: 'unreadable'; readonly reason: string; readonly detail: string }
  | { readonly kind: 'newer'; readonly detail: string }

export type IntakeDesk = {
  take(lease: Lease): Intake
  /** The job is over, whatever became of it: the leases that shared its fate. */
  release(job: Job): readonly Lease[]
  forget(partitions: readonly TopicPartition[]): void
}

/** Turns records into jobs, each try of a delivery once: repeats of settled ones and of unfinished ones are told apart here. */
export function createIntakeDesk(settled: Settled): IntakeDesk {
  const duplicates = new Map<number, WindowDuplicates<Lease>>()

  function duplicatesOf(partition: number): WindowDuplicates<Lease> {
    let found = duplicates.get(partition)
    if (!found) {
      found = createWindowDuplicates()
      duplicates.set(partition, found)
    }
    return found
  }

  return {
    take(lease) {
      const { value, headers, partition } = lease.record
      if (value === null) return { kind: 'unreadable', reason: 'null_value', detail: 'a delivery has no value' }
      try {
        const delivery = decodeDelivery(value)
        const key = settledKey(delivery.id, delivery.body)
        const attempt = delivery.attemptsMade + 1
        if (settled.isSettled(key, delivery.replay, attempt)) return { kind: 'repeat' }
        const sameTry = windowKey(key, delivery.replay, attempt)
        if (duplicatesOf(partition).attach(sameTry, lease) === 'attached') return { kind: 'attached' }
        const job: Job = {
          lease, delivery, windowKey: sameTry, settledKey: key, timesParked: readParked(headers), readAt: performance.now(),
          localFailures: 0, internalFailures: 0,
        }
        return { kind: 'job', job }
      } catch (error) {
        if (!isRecordError(error)) throw error
        return error.kind === 'unknown_schema' ? { kind: 'newer', detail: error.message } : { kind: 'unreadable', reason: 'unreadable', detail: error.message }
      }
    },
    release: ({ lease, windowKey }) => duplicates.get(lease.record.partition)?.release(windowKey) ?? [],
    forget(partitions) {
      for (const { partition } of partitions) duplicates.delete(partition)
    },
  }
}
