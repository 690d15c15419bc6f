import { createSubscriptionIndex } from '../domain/matching.ts'
import type { StoredSubscription } from '../domain/subscription.ts'
import type { KafkaConnection } from '../kafka/client.ts'
import { startTable, type Table, type TableRecord } from '../kafka/table.ts'
import { isRecordError } from '../records/record-error.ts'
import { decodeSubscription } from '../records/subscription-codec.ts'

export type Matched = {
  /** Active and paused ones: an event is routed to both. */
  readonly routed: readonly StoredSubscription[]
  readonly disabledCount: number
}

/** The `subscriptions` topic, followed. Every look-up is as of `freshAsOf()`. */
export type SubscriptionTable = Pick<Table, 'isCaughtUp' | 'freshAsOf' | 'waitFresh' | 'ageMs' | 'lastHeartbeatAt' | 'close'> & {
  /** `deleted`: a tombstone was read. undefined: no record of that id was, or its last one is of a newer posthouse and may forbid what those before it allowed. */
  get(id: string): StoredSubscription | 'deleted' | undefined
  match(tenant: string | null, eventType: string): Matched
  list(): StoredSubscription[]
  size(): number
  /** Records that a newer posthouse wrote: while there are any, this process must not decide what their subscriptions want. */
  newerCount(): number
  /** Whether the last record of this id is one of them; it must not be written over then. */
  isNewer(id: string): boolean
  /** Records without a key or that cannot be read, since the start. */
  ignoredCount(): number
  /** Calls `listener` with each record of an id as it is applied, until the returned function is called. */
  watch(id: string, listener: (record: TableRecord) => void): () => void
}

/** Starts following; look-ups mean something once `isCaughtUp()`. */
export async function openSubscriptionTable(options: {
  readonly connection: KafkaConnection
  readonly topic: string
  readonly groupPrefix: string
  readonly onFailed: (error: Error) => void
}): Promise<SubscriptionTable> {
  const { connection, topic } = options
  const byId = new Map<string, StoredSubscription | 'deleted'>()
  const newer = new Set<string>()
  const watchers = new Map<string, Set<(record: TableRecord) => void>>()
  let index = createSubscriptionIndex()
  let ignored = 0

  function apply(record: TableRecord): void {
    const id = record.key?.toString()
    if (!id) {
      ignored += 1
      connection.log('warn', 'a subscription record without a key is ignored', { topic, offset: record.offset })
      return
    }
    newer.delete(id)
    if (record.value === null) {
      byId.set(id, 'deleted')
      index.delete(id)
      return
    }
    try {
      const subscription = decodeSubscription(Buffer.from(record.value))
      byId.set(id, { ...subscription, id, offset: record.offset, appendedAt: record.timestamp })
      index.set(id, { tenant: subscription.tenant, patterns: subscription.eventTypes })
    } catch (error) {
      if (!isRecordError(error)) throw error
      // A state or a scheme that this version does not know may well be one that forbids to deliver.
      onUnreadable(id, record.offset, error.kind !== 'unreadable', error.message)
    }
  }

  // What was known of the id before stays: an unreadable record is no reason to stop delivering.
  function onUnreadable(id: string, offset: number, isNewer: boolean, detail: string): void {
    if (isNewer) newer.add(id)
    else ignored += 1
    connection.log(isNewer ? 'error' : 'warn', 'a subscription record cannot be read', { topic, subscription: id, offset, detail })
  }

  const table = await startTable({
    ...options,
    onRecord(record) {
      try {
        apply(record)
      } catch (error) {
        onUnreadable(record.key?.toString() ?? '', record.offset, false, String(error))
      }
      for (const listener of watchers.get(record.key?.toString() ?? '') ?? []) listener(record)
    },
    onReset() {
      byId.clear()
      newer.clear()
      index = createSubscriptionIndex()
    },
  })

  return {
    ...table,
    get: (id) => (newer.has(id) ? undefined : byId.get(id)),
    match(tenant, eventType) {
      const routed: StoredSubscription[] = []
      let disabledCount = 0
      for (const id of index.find(tenant, eventType)) {
        const subscription = byId.get(id)
        if (subscription === undefined || subscription === 'deleted') continue
        if (subscription.state === 'disabled') disabledCount += 1
        else routed.push(subscription)
      }
      return { routed, disabledCount }
    },
    list: () => [...byId.values()].filter((one) => one !== 'deleted'),
    size: () => byId.size,
    newerCount: () => newer.size,
    isNewer: (id) => newer.has(id),
    ignoredCount: () => ignored,
    watch(id, listener) {
      const listeners = watchers.get(id) ?? new Set()
      watchers.set(id, listeners.add(listener))
      return () => {
        listeners.delete(listener)
        if (listeners.size === 0) watchers.delete(id)
      }
    },
  }
}
