import type { PartitionAssigner } from 'kafkajs'
import kafkajs from 'kafkajs'
import type { ClusterInternals } from './membership.ts'

const { AssignerProtocol } = kafkajs

export type TopicPartition = { readonly topic: string; readonly partition: number }

/** A member as the leader sees it. `owned` is what it held in `generation` (-1: nothing yet). */
export type Member = {
  readonly memberId: string
  readonly topics: readonly string[]
  readonly owned: readonly TopicPartition[]
  readonly generation: number
}

/**
 * Gives each topic's partitions evenly to the members that subscribe to it and moves as few as possible: a member keeps
 * what it owns up to its share. Of two claims on one partition the higher generation wins, since the other is out of date.
 * @param partitionCounts partitions by topic
 * @returns the partitions of each member, every partition of a subscribed topic exactly once
 */
export function assignSticky(
  members: readonly Member[],
  partitionCounts: ReadonlyMap<string, number>,
): Map<string, TopicPartition[]> {
  const result = new Map<string, TopicPartition[]>()
  for (const { memberId } of members) result.set(memberId, [])
  const held = (memberId: string): number => result.get(memberId)?.length ?? 0

  for (const [topic, count] of [...partitionCounts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const subscribers = members.filter((member) => member.topics.includes(topic))
    if (subscribers.length === 0) continue
    const claims = claimsOf(topic, count, subscribers)
    const base = Math.floor(count / subscribers.length)
    let largerShares = count % subscribers.length

    // Larger shares go first to those who own most of the topic, then to those who hold least of the topics before it.
    const order = [...subscribers].sort((a, b) =>
      (claims.get(b.memberId)?.length ?? 0) - (claims.get(a.memberId)?.length ?? 0) ||
      held(a.memberId) - held(b.memberId) || (a.memberId < b.memberId ? -1 : 1))
    const free = new Set(Array.from({ length: count }, (_, partition) => partition))
    const shares = order.map((member) => {
      const share = base + (largerShares > 0 ? 1 : 0)
      if (largerShares > 0) largerShares -= 1
      const kept = (claims.get(member.memberId) ?? []).slice(0, share)
      for (const partition of kept) free.delete(partition)
      return { member, share, kept }
    })
    const unowned = [...free]
    for (const { member, share, kept } of shares) {
      const partitions = [...kept, ...unowned.splice(0, share - kept.length)].sort((a, b) => a - b)
      result.get(member.memberId)?.push(...partitions.map((partition) => ({ topic, partition })))
    }
  }
  return result
}

function claimsOf(topic: string, count: number, subscribers: readonly Member[]): Map<string, number[]> {
  const owners = new Map<number, Member>()
  for (const member of subscribers) {
    for (const { topic: ownedTopic, partition } of member.owned) {
      if (ownedTopic !== topic || partition >= count) continue
      const other = owners.get(partition)
      if (!other || member.generation > other.generation) owners.set(partition, member)
    }
  }
  const claims = new Map<string, number[]>()
  for (const [partition, { memberId }] of [...owners].sort(([a], [b]) => a - b)) {
    claims.set(memberId, [...(claims.get(memberId) ?? []), partition])
  }
  return claims
}

type Ownership = { readonly generation: number; readonly owned: readonly TopicPartition[] }

const protocolName = 'posthouse-sticky'
const protocolVersion = 1

/**
 * The assigner for kafkajs. `ownership()` is asked at each join: what this member holds, and since which generation.
 * User data is JSON; another program's, or unreadable, counts as owning nothing.
 */
export function stickyAssigner(ownership: () => Ownership): PartitionAssigner {
  return ({ cluster }) => {
    const internals = cluster as unknown as ClusterInternals
    return {
      name: protocolName,
      version: protocolVersion,
      protocol: ({ topics }) => ({
        name: protocolName,
        metadata: AssignerProtocol.MemberMetadata.encode({
          version: protocolVersion, topics, userData: Buffer.from(JSON.stringify(ownership())),
        }),
      }),
      async assign({ members }) {
        const decoded = members.map(({ memberId, memberMetadata }): Member => {
          const metadata = AssignerProtocol.MemberMetadata.decode(memberMetadata)
          return { memberId, topics: metadata?.topics ?? [], ...readOwnership(metadata?.userData) }
        })
        // kafkajs passes the leader's own topics only; during a change of configuration members may differ.
        const topics = [...new Set(decoded.flatMap((member) => member.topics))]
        await internals.addMultipleTargetTopics(topics)
        const counts = new Map(topics.map((topic) => [topic, internals.findTopicPartitionMetadata(topic).length]))
        return [...assignSticky(decoded, counts)].map(([memberId, partitions]) => ({
          memberId,
          memberAssignment: AssignerProtocol.MemberAssignment.encode({
            version: protocolVersion, assignment: byTopic(partitions), userData: Buffer.alloc(0),
          }),
        }))
      },
    }
  }
}

function readOwnership(userData: Buffer | undefined): Ownership {
  try {
    const parsed = JSON.parse(userData?.toString('utf8') ?? '') as Partial<Ownership>
    if (typeof parsed.generation === 'number' && Array.isArray(parsed.owned)) {
      return { generation: parsed.generation, owned: parsed.owned }
    }
  } catch {
    // Not ours to read: a member of another kind owns nothing as far as stickiness goes.
  }
  return { generation: -1, owned: [] }
}

function byTopic(partitions: readonly TopicPartition[]): Record<string, number[]> {
  const assignment: Record<string, number[]> = {}
  for (const { topic, partition } of partitions) (assignment[topic] ??= []).push(partition)
  return assignment
}
