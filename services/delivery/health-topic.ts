import type { EndpointHealth } from '../../shared/domain/health.ts'
import type { KafkaConnection } from '../../shared/kafka/client.ts'
import { startTable, type Table } from '../../shared/kafka/table.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import type { Log } from '../../shared/log/log.ts'
import { decodeEndpointHealth, encodeEndpointHealth } from '../../shared/records/endpoint-health-codec.ts'
import { isRecordError } from '../../shared/records/record-error.ts'

export type HealthTopic = Pick<Table, 'isCaughtUp' | 'freshAsOf' | 'waitFresh' | 'ageMs' | 'lastHeartbeatAt' | 'close'> & {
  get(endpointKey: string): EndpointHealth | undefined
  /** The record that says what is known of an endpoint. */
  record(health: EndpointHealth): ProducedRecord
  /** Records that a newer posthouse wrote and this one cannot read. */
  newerCount(): number
}

/** The `endpoint-health` topic as a table: what owners before this one knew of every endpoint. */
export async function openHealthTopic(options: {
  readonly connection: KafkaConnection
  readonly topic: string
  readonly groupPrefix: string
  readonly log: Log
  readonly onFailed: (error: Error) => void
}): Promise<HealthTopic> {
  const { topic, log } = options
  const byKey = new Map<string, { readonly health: EndpointHealth; readonly partition: number }>()
  const newer = new Set<string>()
  const table = await startTable({
    connection: options.connection,
    topic,
    groupPrefix: options.groupPrefix,
    onRecord({ key, value, partition, offset }) {
      const endpointKey = key?.toString() ?? ''
      newer.delete(endpointKey)
      if (value === null) {
        byKey.delete(endpointKey)
        return
      }
      try {
        // Copied: what is decoded may point into the whole fetch response.
        byKey.set(endpointKey, { health: decodeEndpointHealth(Buffer.from(value)), partition })
      } catch (error) {
        if (!isRecordError(error)) throw error
        if (error.kind === 'unknown_schema') newer.add(endpointKey)
        log.warn('a record of endpoint health cannot be read; the endpoint starts without one', { partition, offset, kind: error.kind, detail: error.message })
      }
    },
    onReset(partition) {
      for (const [key, entry] of byKey) if (entry.partition === partition) byKey.delete(key)
    },
    onFailed: options.onFailed,
  })
  return {
    ...table,
    get: (endpointKey) => byKey.get(endpointKey)?.health,
    record: (health) => ({ topic, key: health.endpointKey, value: encodeEndpointHealth(health) }),
    newerCount: () => newer.size,
  }
}
