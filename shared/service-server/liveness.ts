/** A member of a consumer group. */
export type Member = {
  /** As a person would call it: "the consumer of events". */
  readonly name: string
  /** Date.now() ms. */
  readonly startedAt: number
  /** Date.now() ms of the last heartbeat the coordinator took; null before the first. */
  lastHeartbeatAt(): number | null
  readonly sessionTimeoutMs: number
}

/** A member is given up for dead after this many session timeouts. */
const timeoutsUntilDead = 3

/**
 * Why only a restart can help: a member whose heartbeats no longer come although the brokers have been answering us all the while.
 * The time counts from when they began to answer, as members need some seconds to be back after an outage.
 */
export function reasonToRestart(
  members: readonly Member[],
  /** Answers of the brokers, epoch ms: the first since one failed, and the last; null while they fail. */
  answering: { readonly since: number; readonly lastAt: number } | null,
): string | null {
  if (answering === null) return null
  for (const { name, startedAt, lastHeartbeatAt, sessionTimeoutMs } of members) {
    const silentMs = answering.lastAt - Math.max(lastHeartbeatAt() ?? startedAt, answering.since)
    if (silentMs > timeoutsUntilDead * sessionTimeoutMs) {
      return `${name} has had no heartbeat for ${Math.round(silentMs / 1000)} s although the brokers answer`
    }
  }
  return null
}
