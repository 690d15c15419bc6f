import { failureClasses } from '../domain/classify.ts'
import type { Attempt } from '../domain/delivery.ts'
import { oneOf } from './checks.ts'
import { wireOf } from './wire.ts'

const wire = wireOf('attempt')
const states: readonly Attempt['state'][] = ['waiting', 'success', 'permanent_failure', 'dlq', 'cancelled', 'expired']

/** The value of a record in `attempts`. */
export const encodeAttempt = (attempt: Attempt): Buffer => wire.write(attempt, 512 + (attempt.excerpt?.length ?? 0))

/** @throws RecordError */
export function decodeAttempt(bytes: Buffer): Attempt {
  const attempt = wire.read(bytes) as Attempt
  oneOf(states, attempt.state, 'state')
  if (attempt.failureClass !== null) oneOf(failureClasses, attempt.failureClass, 'failureClass')
  return attempt
}
