import { setTimeout as sleep } from 'node:timers/promises'
import type { StoredSubscription, Subscription } from '../domain/subscription.ts'
import type { Producer } from '../kafka/producer.ts'
import type { TableRecord } from '../kafka/table.ts'
import { isRecordError } from '../records/record-error.ts'
import { decodeSubscription, encodeSubscription } from '../records/subscription-codec.ts'
import { draftChange, draftNew, type NewSubscription, type Rules, type SubscriptionChange } from './draft.ts'
import type { SubscriptionTable } from './table.ts'

export type Written =
  | { readonly kind: 'written'; readonly subscription: StoredSubscription }
  | { readonly kind: 'deleted'; readonly id: string }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] }
  | { readonly kind: 'not_found'; readonly id: string }
  /** Somebody else wrote it meanwhile; theirs stands. */
  | { readonly kind: 'conflict'; readonly id: string }
  /** A newer posthouse wrote it: writing over it would lose what this version cannot read. */
  | { readonly kind: 'newer'; readonly id: string }

export type SubscriptionWriter = {
  create(wanted: NewSubscription): Promise<Written>
  /** `ifVersion`: only if the subscription's record is still this one (its offset). */
  update(id: string, change: SubscriptionChange, options?: { readonly ifVersion?: number }): Promise<Written>
  delete(id: string, options?: { readonly ifVersion?: number }): Promise<Written>
}

/** Attempts and routing use a table at most a second old: once as much has passed after the write, every one of them sees it. */
const settledAfterMs = 1_000

/**
 * Writes subscriptions; the table must follow the same topic. A write resolves a second after it is acknowledged, so that nothing that
 * begins later is done by the old record.
 */
export function createSubscriptionWriter(options: {
  readonly table: SubscriptionTable
  readonly producer: Producer
  readonly topic: string
  readonly rules: Rules
  readonly now?: () => number
}): SubscriptionWriter {
  const { table, producer, topic, rules } = options
  const now = options.now ?? Date.now

  /** The record to change, or why there is none. */
  async function present(id: string, ifVersion: number | undefined): Promise<StoredSubscription | Written> {
    await table.waitFresh(performance.now())
    const found = table.get(id)
    if (table.isNewer(id)) return { kind: 'newer', id }
    if (found === undefined || found === 'deleted') return { kind: 'not_found', id }
    return ifVersion === undefined || ifVersion === found.offset ? found : { kind: 'conflict', id }
  }

  /**
   * Kafka cannot compare and set, so the writer looks afterwards: a write of somebody else's between the one it knew and its own is put
   * back. It must be called in the same turn of the event loop in which `basedOn` was read, or a record between is missed.
   */
  async function write(id: string, subscription: Subscription | null, basedOn: StoredSubscription | null): Promise<Written> {
    const seen: TableRecord[] = []
    const unwatch = table.watch(id, (record) => seen.push({ ...record, value: record.value && Buffer.from(record.value) }))
    try {
      const value = subscription && encodeSubscription(subscription)
      // Also a copy of ours: a produce request whose answer was lost is stored twice.
      const isOurs = (record: TableRecord): boolean => value === null ? record.value === null : record.value?.equals(value) === true
      const { offset, appendedAt } = await producer.send({ topic, key: id, value })
      const acknowledgedAt = performance.now()
      await table.waitFresh(acknowledgedAt)
      const between = seen.findLast((record) => record.offset > (basedOn?.offset ?? -1) && record.offset < offset && !isOurs(record))
      if (between) {
        await producer.send({ topic, key: id, value: between.value })
        await sleep(settledAfterMs)
        return { kind: 'conflict', id }
      }
      await sleep(Math.max(0, acknowledgedAt + settledAfterMs - performance.now()))
      // What this was based on may have been such a write itself, and was put back over ours since.
      const last = seen.findLast((record) => record.offset > offset)
      if (last && !isOurs(last) && isEarlier(last, subscription)) return { kind: 'conflict', id }
      if (!subscription) return { kind: 'deleted', id }
      return { kind: 'written', subscription: { ...subscription, offset, appendedAt: appendedAt ?? now() } }
    } finally {
      unwatch()
    }
  }

  return {
    async create(wanted) {
      const drafted = draftNew(wanted, rules, now())
      if ('problems' in drafted) return { kind: 'invalid', problems: drafted.problems }
      return write(drafted.subscription.id, drafted.subscription, null)
    },

    async update(id, change, { ifVersion } = {}) {
      const found = await present(id, ifVersion)
      if ('kind' in found) return found
      const { offset: _, appendedAt: __, ...subscription } = found
      const drafted = draftChange(subscription, change, rules, now())
      if ('problems' in drafted) return { kind: 'invalid', problems: drafted.problems }
      return write(id, drafted.subscription, found)
    },

    async delete(id, { ifVersion } = {}) {
      const found = await present(id, ifVersion)
      return 'kind' in found ? found : write(id, null, found)
    },
  }
}

/** Whether a record that follows ours is older in content: every change is dated later than what it is based on, so it was put back. */
function isEarlier(record: TableRecord, ours: Subscription | null): boolean {
  if (record.value === null || ours === null) return true
  try {
    return decodeSubscription(record.value).updatedAt <= ours.updatedAt
  } catch (error) {
    if (!isRecordError(error)) throw error
    // From a newer posthouse, thus no copy of anything this one read.
    return false
  }
}
