import type { Admin } from 'kafkajs'

/** A consumer group seen from outside. */
export type GroupState = {
  readonly members: number
  /** Records not yet committed as done; of partitions nothing was ever committed of, all there are. */
  readonly lag: number
  /** Grows whenever anything is committed: the sum of all committed offsets. */
  readonly progress: number
  /** Partitions nothing was ever committed of. */
  readonly uncommitted: number
}

/** Reads any group's members, and its lag on topics that exist. A group that never was has no members. */
export async function readGroupState(admin: Admin, groupId: string, topics: readonly string[]): Promise<GroupState> {
  const [{ groups }, committed, ends] = await Promise.all([
    admin.describeGroups([groupId]),
    admin.fetchOffsets({ groupId, topics: [...topics] }),
    Promise.all(topics.map(async (topic) => [topic, await admin.fetchTopicOffsets(topic)] as const)),
  ])
  const endsOf = new Map(ends.map(([topic, partitions]) => [topic, new Map(partitions.map((one) => [one.partition, one]))]))
  let lag = 0
  let progress = 0
  let uncommitted = 0
  for (const { topic, partitions } of committed) {
    for (const { partition, offset } of partitions) {
      const end = endsOf.get(topic)?.get(partition)
      if (!end) continue
      const [low, high, at] = [Number(end.low), Number(end.high), Number(offset)]
      if (at < 0) uncommitted++
      else progress += at
      lag += Math.max(0, high - Math.max(at, low))
    }
  }
  return { members: groups[0]?.members.length ?? 0, lag, progress, uncommitted }
}
