import { z } from 'zod'
import { failureClasses } from '../shared/domain/classify.ts'
import { parseDurationMs } from '../shared/domain/duration.ts'
import { jitterKinds, noPolicy, type SubscriptionPolicy } from '../shared/domain/policy.ts'
import { CliError } from './cli-error.ts'
import { withoutUndefined } from './policy-options.ts'

const duration = z.string().transform((text, { addIssue }) => {
  try {
    return parseDurationMs(text)
  } catch (error) {
    addIssue({ code: 'custom', message: (error as Error).message })
    return z.NEVER
  }
})

/** A policy as files have it: durations as `5m`, what is left out as the installation has it. */
export const policyShape = z.strictObject({
  strategy: z.enum(['standard', 'exponential']).optional(),
  schedule: z.array(duration).optional(),
  base: duration.optional(),
  max: duration.optional(),
  maxAttempts: z.number().optional(),
  adaptive: z.boolean().optional(),
  jitter: z.enum(jitterKinds).optional(),
  timeout: duration.optional(),
  statusClasses: z.record(z.string().regex(/^\d{3}$/), z.enum(failureClasses)).optional(),
})

export function policyFromFile(given: z.infer<typeof policyShape>): SubscriptionPolicy {
  const { strategy, schedule, base, max, maxAttempts, adaptive, jitter, timeout, statusClasses = {} } = given
  return {
    ...noPolicy,
    ...withoutUndefined({ strategy, scheduleMs: schedule, baseMs: base, maxMs: max, maxAttempts, adaptive, jitter, timeoutMs: timeout }),
    statusClasses: Object.entries(statusClasses).map(([status, failureClass]) => ({ status: Number(status), failureClass })),
  }
}

/** A policy on its own, as JSON text; `from` names where it was read, for messages. @throws CliError that lists every fault */
export function parsePolicy(text: string, from: string): SubscriptionPolicy {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw new CliError('usage', `${from} is not JSON: ${(error as Error).message}`)
  }
  const parsed = policyShape.safeParse(json)
  if (parsed.success) return policyFromFile(parsed.data)
  const faults = parsed.error.issues.map(({ path, message }) => `  ${path.map(String).join('.') || 'the whole'}: ${message}`)
  throw new CliError('usage', [`${from} is not a policy`, ...faults].join('\n'), 'it has the form of "policy" in "posthouse subscriptions apply --help"')
}
