import kafkajs, { type Admin } from 'kafkajs'

const { AssignerProtocol } = kafkajs

/** Which partitions of a group somebody owns. */
export type GroupOwners = {
  /** False while its members are being given their partitions: then nobody owns any, which says nothing. */
  readonly isSettled: boolean
  owns(topic: string, partition: number): boolean
}

const settledStates: readonly string[] = ['Stable', 'Empty', 'Dead']

/** Reads who owns what in groups, without joining them. A group that never was owns nothing. */
export async function readGroupOwners(admin: Pick<Admin, 'describeGroups'>, groupIds: readonly string[]): Promise<ReadonlyMap<string, GroupOwners>> {
  const { groups } = await admin.describeGroups([...groupIds])
  return new Map(groups.map(({ groupId, state, members }) => {
    const owned = new Set<string>()
    for (const { memberAssignment } of members) {
      // Empty until its leader has said who gets what.
      const decoded = memberAssignment.length > 0 ? AssignerProtocol.MemberAssignment.decode(memberAssignment) : null
      for (const [topic, partitions] of Object.entries(decoded?.assignment ?? {})) {
        for (const partition of partitions) owned.add(`${topic}/${partition}`)
      }
    }
    return [groupId, { isSettled: settledStates.includes(state), owns: (topic, partition) => owned.has(`${topic}/${partition}`) }]
  }))
}
