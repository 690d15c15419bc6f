import type { Member } from '../../shared/kafka-service/answering.ts'
import { defaultSessionTimeoutMs, type RetryTier } from './retry-tier.ts'

/** What is missing before every tier there is, is served; each in a few words. */
export function waitingFor(retryTier: Pick<RetryTier, 'tiers' | 'problems'>, now: number): string[] {
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

export function membersOf(retryTier: Pick<RetryTier, 'tiers'>): Member[] {
  return retryTier.tiers().map(({ suffix, startedAt, consumer }) => ({ name: `tier ${suffix}`, startedAt, lastHeartbeatAt: consumer.lastHeartbeatAt }))
}
