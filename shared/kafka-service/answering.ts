import type { AdminClient } from '../kafka/client.ts'

/** Answers of the brokers, epoch ms: the first since one failed to come, and the last; null while they fail. */
export type Answering = { readonly since: number; readonly lastAt: number } | null

export type AnsweringWatch = {
  now(): Answering
  close(): void
}

const askEveryMs = 5_000

/** Asks the brokers for their list of groups' home again and again: whether they answer is what tells a dead member from an outage. */
export function watchAnswering(admin: Pick<AdminClient, 'describeCluster'>): AnsweringWatch {
  let answering: Answering = null
  let isAsking = false
  const ask = async (): Promise<void> => {
    if (isAsking) return
    isAsking = true
    try {
      await admin.describeCluster()
      answering = { since: answering?.since ?? Date.now(), lastAt: Date.now() }
    } catch {
      // What is wrong is said by whoever needs the brokers; here only that they do not answer counts.
      answering = null
    } finally {
      isAsking = false
    }
  }
  const timer = setInterval(() => void ask(), askEveryMs)
  void ask()
  return { now: () => answering, close: () => clearInterval(timer) }
}

/** A member of a group, as far as its heartbeats go. */
export type Member = { readonly name: string; readonly startedAt: number; lastHeartbeatAt(): number | null }

/** A member is given up for dead after this many session timeouts. */
const timeoutsUntilDead = 3

/**
 * Why only a restart can help: a member whose heartbeats no longer come although the brokers have been answering all the while. The time
 * counts from when they began to answer, as members need some seconds to be back after an outage.
 */
export function reasonToRestart(members: readonly Member[], answering: Answering, sessionTimeoutMs: number): string | null {
  if (answering === null) return null
  for (const { name, startedAt, lastHeartbeatAt } of members) {
    const silentMs = answering.lastAt - Math.max(lastHeartbeatAt() ?? startedAt, answering.since)
    if (silentMs > timeoutsUntilDead * sessionTimeoutMs) {
      return `${name} has had no heartbeat for ${Math.round(silentMs / 1000)} s although the brokers answer`
    }
  }
  return null
}
