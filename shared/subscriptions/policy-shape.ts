import { z } from 'zod'
import { failureClasses } from '../domain/classify.ts'
import { formatDuration, parseDurationMs } from '../domain/duration.ts'
import { jitterKinds, type SubscriptionPolicy } from '../domain/policy.ts'

/** A duration as people write it, as ms. */
export const durationText = z.string().transform((text, { addIssue }) => {
  try {
    return parseDurationMs(text)
  } catch (error) {
    addIssue({ code: 'custom', message: (error as Error).message })
    return z.NEVER
  }
})

/** A policy as JSON has it: durations as `5m`, what is left out as the installation has it. */
export const policyShape = z.strictObject({
  strategy: z.enum(['standard', 'exponential']).optional(),
  schedule: z.array(durationText).optional(),
  base: durationText.optional(),
  max: durationText.optional(),
  maxAttempts: z.number().optional(),
  adaptive: z.boolean().optional(),
  jitter: z.enum(jitterKinds).optional(),
  timeout: durationText.optional(),
  statusClasses: z.record(z.string().regex(/^\d{3}$/), z.enum(failureClasses)).optional(),
})

export function policyFromShape(given: z.output<typeof policyShape>): SubscriptionPolicy {
  const { strategy = null, schedule = null, base = null, max = null, maxAttempts = null, adaptive = null, jitter = null, timeout = null, statusClasses = {} } = given
  return {
    strategy, scheduleMs: schedule, baseMs: base, maxMs: max, maxAttempts, adaptive, jitter, timeoutMs: timeout,
    statusClasses: Object.entries(statusClasses).map(([status, failureClass]) => ({ status: Number(status), failureClass })),
  }
}

/** The same the other way; what the policy leaves open is left out. */
export function shapeOfPolicy(policy: SubscriptionPolicy): z.input<typeof policyShape> {
  const { strategy, scheduleMs, baseMs, maxMs, maxAttempts, adaptive, jitter, timeoutMs, statusClasses } = policy
  return {
    ...(strategy === null ? {} : { strategy }),
    ...(scheduleMs === null ? {} : { schedule: scheduleMs.map(formatDuration) }),
    ...(baseMs === null ? {} : { base: formatDuration(baseMs) }),
    ...(maxMs === null ? {} : { max: formatDuration(maxMs) }),
    ...(maxAttempts === null ? {} : { maxAttempts }),
    ...(adaptive === null ? {} : { adaptive }),
    ...(jitter === null ? {} : { jitter }),
    ...(timeoutMs === null ? {} : { timeout: formatDuration(timeoutMs) }),
    ...(statusClasses.length === 0 ? {} : { statusClasses: Object.fromEntries(statusClasses.map(({ status, failureClass }) => [String(status), failureClass])) }),
  }
}
