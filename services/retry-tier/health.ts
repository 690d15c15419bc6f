import { defaultSessionTimeoutMs, type RetryTier } from './retry-tier.ts'
import type { Answering } from './served-tiers.ts'

/** A member is given up for dead after this many session timeouts. */
const timeoutsUntilDead = 3

/** What is missing before every tier there is, is served; each in a few words. */
export function waitingFor(retryTier: RetryTier | null, now: number): string[] {
  if (retryTier === null) return ['Kafka has not answered yet, or topics are missing']
  const tiers = retryTier.tiers()
  const missing = retryTier.problems().slice()
  if (tiers.length === 0) missing.push('there is no retry topic to serve')
  for (const { suffix, consumer } of tiers) {
    const heartbeatAt = consumer.lastHeartbeatAt()
    if (!consumer.isJoined()) missing.push(`tier ${suffix} is joining its group`)
    else if (heartbeatAt !== null && now - heartbeatAt > defaultSessionTimeoutMs) missing.push(`tier ${suffix} hears nothing from its brokers`)
  }
  return missing
}

/**
 * Why only a restart can help: a member whose heartbeats no longer come although the brokers have been answering us all the while.
 * The time counts from when they began to answer, as members need some seconds to be back after an outage.
 */
export function reasonToRestart(retryTier: RetryTier | null, answering: Answering, sessionTimeoutMs = defaultSessionTimeoutMs): string | null {
  if (retryTier === null || answering === null) return null
  for (const { suffix, startedAt, consumer } of retryTier.tiers()) {
    const silentMs = answering.lastAt - Math.max(consumer.lastHeartbeatAt() ?? startedAt, answering.since)
    if (silentMs > timeoutsUntilDead * sessionTimeoutMs) {
      return `tier ${suffix} has had no heartbeat for ${Math.round(silentMs / 1000)} s although the brokers answer`
    }
  }
  return null
}
