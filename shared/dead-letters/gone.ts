import type { Scanner } from '../kafka/scanner.ts'
import { decodeEndpointHealth } from '../records/endpoint-health-codec.ts'
import { isRecordError } from '../records/record-error.ts'

/** Endpoints that answered 410, by key: a subscription whose record is not younger than this (epoch ms, broker time) counts as disabled. */
export type GoneEndpoints = ReadonlyMap<string, number>

/** Reads the whole `endpoint-health` topic, and keeps of it only these. */
export async function readGoneEndpoints(scanner: Scanner, topic: string): Promise<GoneEndpoints> {
  const gone = new Map<string, number>()
  for (const range of await scanner.ranges(topic)) {
    for await (const records of scanner.read(range)) {
      for (const { key, value } of records) {
        const endpointKey = key?.toString() ?? ''
        const goneAt = value && goneAtOf(value)
        if (goneAt === null) gone.delete(endpointKey)
        else gone.set(endpointKey, goneAt)
      }
    }
  }
  return gone
}

function goneAtOf(value: Buffer): number | null {
  try {
    return decodeEndpointHealth(value).goneAt
  } catch (error) {
    // Delivery knows what it says, and makes a dead letter again of what is sent to an endpoint that is gone.
    if (!isRecordError(error)) throw error
    return null
  }
}
