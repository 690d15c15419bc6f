import { setTimeout as sleep } from 'node:timers/promises'
import type { StoredSubscription, Subscription } from '../domain/subscription.ts'
import type { Producer } from '../kafka/producer.ts'
import type { TableRecord } from '../kafka/table.ts'
import { encodeSubscription } from '../records/subscription-codec.ts'
import { draftChange, draftNew, type NewSubscription, type Rules, type SubscriptionChange } from './draft.ts'
import type { SubscriptionTable } from './table.ts'

export type Written =
  | { readonly kind: 'written'; readonly subscription: StoredSubscription }
  | { readonly kind: 'deleted'; readonly id: string }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] }
  | { readonly kind: 'not_found'; readonly id: string }
  /** Somebody else wrote it meanwhile; theirs stands. */
  | { readonly kind: 'conflict'; readonly id: string }

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

  const present = async (id: string): Promise<StoredSubscription | null> => {
    await table.waitFresh(performance.now())
    const found = table.get(id)
    return found === undefined || found === 'deleted' ? null : found
  }

  /** Kafka cannot compare and set, so the writer looks afterwards: a write of somebody else's between the one it knew and its own is put back. */
  async function write(id: string, subscription: Subscription | null, basedOn: StoredSubscription | null): Promise<Written> {
    const others: TableRecord[] = []
    const unwatch = table.watch(id, (record) => others.push({ ...record, value: record.value && Buffer.from(record.value) }))
    try {
      // Between reading and watching nothing is missed: both happen in one turn of the event loop, and the table changes in others.
      const value = subscription && encodeSubscription(subscription)
      const { offset, appendedAt } = await producer.send({ topic, key: id, value })
      const acknowledgedAt = performance.now()
      await table.waitFresh(acknowledgedAt)
      const between = others.filter((record) => record.offset > (basedOn?.offset ?? -1) && record.offset < offset).at(-1)
      if (between) {
        await producer.send({ topic, key: id, value: between.value })
        await sleep(settledAfterMs)
        return { kind: 'conflict', id }
      }
      await sleep(Math.max(0, acknowledgedAt + settledAfterMs - performance.now()))
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
      const found = await present(id)
      if (!found) return { kind: 'not_found', id }
      if (ifVersion !== undefined && ifVersion !== found.offset) return { kind: 'conflict', id }
      const { offset: _, appendedAt: __, ...subscription } = found
      const drafted = draftChange(subscription, change, rules, now())
      if ('problems' in drafted) return { kind: 'invalid', problems: drafted.problems }
      return write(id, drafted.subscription, found)
    },

    async delete(id, { ifVersion } = {}) {
      const found = await present(id)
      if (!found) return { kind: 'not_found', id }
      if (ifVersion !== undefined && ifVersion !== found.offset) return { kind: 'conflict', id }
      return write(id, null, found)
    },
  }
}
