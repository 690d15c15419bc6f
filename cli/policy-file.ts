import type { SubscriptionPolicy } from '../shared/domain/policy.ts'
import { policyFromShape, policyShape } from '../shared/subscriptions/policy-shape.ts'
import { CliError } from './cli-error.ts'

/** A policy on its own, as JSON text; `from` names where it was read, for messages. @throws CliError that lists every fault */
export function parsePolicy(text: string, from: string): SubscriptionPolicy {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw new CliError('usage', `${from} is not JSON: ${(error as Error).message}`)
  }
  const parsed = policyShape.safeParse(json)
  if (parsed.success) return policyFromShape(parsed.data)
  const faults = parsed.error.issues.map(({ path, message }) => `  ${path.map(String).join('.') || 'the whole'}: ${message}`)
  throw new CliError('usage', [`${from} is not a policy`, ...faults].join('\n'), 'it has the form of "policy" in "posthouse subscriptions apply --help"')
}
