import type { Event } from '../../shared/domain/event.ts'
import { routedDelivery } from '../../shared/domain/routed-delivery.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import type { ProducedRecord } from '../../shared/kafka/produced-record.ts'
import { encodeDelivery } from '../../shared/records/delivery-codec.ts'

/** Most records, and about most bytes, handed over between two looks at whether there is room. */
const mostTogether = 100
const mostBytesTogether = 256 * 1024
/** What a delivery holds beside the body: ids, origin, key and headers, roughly. */
const besideBody = 1024

/** How many deliveries of an event are made at a time. */
export function chunkSizeOf(event: Event): number {
  return Math.max(1, Math.min(mostTogether, Math.floor(mostBytesTogether / (event.body.length + besideBody))))
}

/**
 * One event for one subscription. Its bytes are built whole for each: all but the two ids is the same for every subscription, but a
 * record's value is one buffer, so the body is copied once each in any case, and encoding the rest is 5 % of what producing costs.
 * @param routedAt epoch ms, broker time
 */
export function deliveryRecord(topic: string, event: Event, { id: subscriptionId, endpointKey }: StoredSubscription, routedAt: number): ProducedRecord {
  return { topic, key: endpointKey, value: encodeDelivery(routedDelivery(event, subscriptionId, { replay: 0, routedAt })) }
}
