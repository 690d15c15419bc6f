import { createAttemptHistory, type EndpointHealth, type HealthBand } from '../domain/health.ts'
import { partitionOf } from '../kafka/partitioner.ts'
import type { Scanner } from '../kafka/scanner.ts'
import { decodeEndpointHealth } from '../records/endpoint-health-codec.ts'
import { isRecordError } from '../records/record-error.ts'
import type { ScanAccount } from './scan-account.ts'

/**
 * What the `endpoint-health` topic says of an endpoint. Its owner writes it at most every 10 s unless something important changes, so
 * the last attempts may not be in it yet. Times in epoch ms.
 */
export type EndpointState = {
  readonly endpointKey: string
  readonly band: HealthBand
  /** The mission's health score as of now, 0 to 1: it falls while the endpoint is idle. */
  readonly score: number
  /** What the band goes by: the same without time, 0 to 1. */
  readonly bandScore: number
  /** Recent attempts the scores are made of, at most 100. */
  readonly attempts: number
  readonly lastError: string | null
  /** Of the last attempt; null where none was read. */
  readonly lastStatus: number | null
  /** The end of the quiet it asked for; null where that is over, or was never. */
  readonly throttledUntil: number | null
  /** It answered 410 then; subscriptions whose records are not younger than `goneFor` are treated as disabled. */
  readonly goneSince: number | null
  readonly goneFor: number | null
  readonly updatedAt: number
}

/**
 * The endpoints there are, by key, or the one of `endpointKey`; nothing was sent in 30 days to those that are not there. Some 300 bytes
 * an endpoint are kept.
 * @param now epoch ms, broker time
 */
export async function readEndpoints(
  scanner: Scanner, topic: string, { now, endpointKey }: { readonly now: number; readonly endpointKey?: string }, account: ScanAccount,
): Promise<Map<string, EndpointState>> {
  // Partitions are never added to this topic, so a key has always been in this one.
  const partitions = endpointKey === undefined ? undefined : [partitionOf(Buffer.from(endpointKey), await scanner.partitionCount(topic))]
  const ranges = await scanner.ranges(topic, partitions === undefined ? {} : { partitions })
  const states = new Map<string, EndpointState>()
  account.begin(ranges)
  for (const range of ranges) {
    for await (const records of scanner.read(range)) {
      account.took(records)
      for (const { key, value } of records) {
        const name = key?.toString() ?? ''
        if (endpointKey !== undefined && name !== endpointKey) continue
        const health = value === null ? null : decode(value)
        if (health === 'unreadable') account.unreadableOne()
        else if (health === null) states.delete(name)
        else states.set(name, stateOf(health, now))
      }
    }
  }
  return states
}

function stateOf(health: EndpointHealth, now: number): EndpointState {
  const { endpointKey, band, throttledUntil, lastError, lastStatus, updatedAt } = health
  const history = createAttemptHistory(health)
  return {
    endpointKey, band, score: history.score(now), bandScore: history.bandScore(), attempts: history.count, lastError, lastStatus, updatedAt,
    throttledUntil: throttledUntil !== null && throttledUntil > now ? throttledUntil : null,
    goneSince: health.goneAt === null ? null : (health.goneWrittenAt ?? health.goneAt), goneFor: health.goneAt,
  }
}

function decode(value: Buffer): EndpointHealth | 'unreadable' {
  try {
    return decodeEndpointHealth(value)
  } catch (error) {
    if (!isRecordError(error)) throw error
    return 'unreadable'
  }
}

/** Whether delivery treats a subscription as disabled because its endpoint is gone; `appendedAt`: of the subscription's record, epoch ms. */
export const isGoneFor = ({ goneFor }: Pick<EndpointState, 'goneFor'>, { appendedAt }: { readonly appendedAt: number }): boolean =>
  goneFor !== null && appendedAt <= goneFor
