import type { Delivery } from './delivery.ts'
import type { Event } from './event.ts'
import { deliveryId } from './ids.ts'

/**
 * An event for one subscription, before any attempt. The same event and subscription give the same delivery id and bytes, whoever makes
 * it and whenever.
 * @param made `routedAt`: epoch ms, broker time; `replay`: 0 for the router
 */
export function routedDelivery(event: Event, subscriptionId: string, { replay, routedAt }: { readonly replay: number; readonly routedAt: number }): Delivery {
  const { id: eventId, type: eventType, tenant, source, body, origin, sourceKey, sourceHeaders } = event
  return {
    id: deliveryId({ tenant, source, eventId, subscriptionId }),
    replay, subscriptionId, tenant, eventId, eventType, routedAt, origin, sourceKey, sourceHeaders, body,
    attemptsMade: 0, lastWaitMs: 0, attempts: [],
  }
}
