import { failureClasses } from '../domain/classify.ts'
import type { Delivery } from '../domain/delivery.ts'
import { atLeast, oneOf } from './checks.ts'
import { wireOf } from './wire.ts'

const wire = wireOf('delivery')
/** All but body, headers and excerpts. */
const usualBytes = 512

/** The value of a record in `deliveries` and the tiers. */
export function encodeDelivery(delivery: Delivery): Buffer {
  let size = usualBytes + delivery.body.length
  for (const { name, value } of delivery.sourceHeaders) size += name.length + value.length + 8
  for (const { excerpt } of delivery.attempts) size += 64 + (excerpt?.length ?? 0)
  return wire.write(delivery, size)
}

/** @throws RecordError */
export function decodeDelivery(bytes: Buffer): Delivery {
  return checkDelivery(wire.read(bytes) as Delivery)
}

/** What the schema cannot say. @throws RecordError */
export function checkDelivery(delivery: Delivery): Delivery {
  atLeast(0, delivery.replay, 'replay')
  atLeast(0, delivery.attemptsMade, 'attemptsMade')
  for (const { failureClass, attempt } of delivery.attempts) {
    oneOf(failureClasses, failureClass, 'failureClass')
    atLeast(1, attempt, 'attempt')
  }
  return delivery
}
