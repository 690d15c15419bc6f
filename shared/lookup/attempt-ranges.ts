import { partitionOf } from '../kafka/partitioner.ts'
import type { Scanner, ScanRange } from '../kafka/scanner.ts'

/** Epoch ms, by the broker's clock: from `since` on and before `until`. */
export type TimeBounds = { readonly since?: number; readonly until?: number }

/**
 * Where attempts are looked for. Those of one endpoint are in the one partition that its key belongs to, as long as the topic was not
 * given more partitions: what was written before that may lie elsewhere.
 */
export async function attemptRanges(
  scanner: Scanner, topic: string, { endpointKey, since, until }: TimeBounds & { readonly endpointKey?: string },
): Promise<ScanRange[]> {
  const partitions = endpointKey === undefined ? undefined : [partitionOf(Buffer.from(endpointKey), await scanner.partitionCount(topic))]
  return scanner.ranges(topic, {
    ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }), ...(partitions === undefined ? {} : { partitions }),
  })
}
