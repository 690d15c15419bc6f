import { deadLetterReasons, type DeadLetter } from '../domain/delivery.ts'
import { oneOf } from './checks.ts'
import { checkDelivery } from './delivery-codec.ts'
import { wireOf } from './wire.ts'

const wire = wireOf('dead-letter')
const states: readonly DeadLetter['state'][] = ['permanent_failure', 'dlq', 'expired']
const usualBytes = 2048

/** The value of a record in `dlq`. */
export function encodeDeadLetter(deadLetter: DeadLetter): Buffer {
  const { body, sourceHeaders } = deadLetter.delivery
  return wire.write(deadLetter, usualBytes + body.length + sourceHeaders.reduce((sum, { name, value }) => sum + name.length + value.length + 8, 0))
}

/** @throws RecordError */
export function decodeDeadLetter(bytes: Buffer): DeadLetter {
  const deadLetter = wire.read(bytes) as DeadLetter
  oneOf(states, deadLetter.state, 'state')
  oneOf(deadLetterReasons, deadLetter.reason, 'reason')
  checkDelivery(deadLetter.delivery)
  return deadLetter
}
