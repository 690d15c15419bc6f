import { healthBands, type EndpointHealth } from '../domain/health.ts'
import { oneOf } from './checks.ts'
import { RecordError } from './record-error.ts'
import { wireOf } from './wire.ts'

const wire = wireOf('endpoint-health')

/** The value of a record in `endpoint-health`. */
export const encodeEndpointHealth = (health: EndpointHealth): Buffer => wire.write(health, 640)

/** @throws RecordError */
export function decodeEndpointHealth(bytes: Buffer): EndpointHealth {
  const health = wire.read(bytes) as EndpointHealth
  oneOf(healthBands, health.band, 'band')
  const rate = health.throttleRatePerSecond
  if (rate !== null && !(rate >= 0 && rate < Infinity)) throw new RecordError('unreadable', `its throttle rate is ${rate}`)
  return health
}
