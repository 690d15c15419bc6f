import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { createContract, type ContractInput, type RetryContract } from '../../shared/contract/contract.ts'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'

const day = 86_400_000

/** The contract of an installation that sets nothing. */
export const sampleContract = (overrides: Partial<ContractInput> = {}): RetryContract => createContract({
  version: '1.2.3', subject: { kind: 'defaults' }, policy: defaultPolicy, scheme: 'stripe', expiryMs: 14 * day,
  tiersMs: [10_000, 60_000, 48 * 3_600_000], endpointCap: { start: 10, most: 256 }, deadLettersKeptMs: 30 * day,
  topics: { attempts: 'a', dlq: 'd', health: 'h', deliveries: 'l', retryPrefix: 'r.', subscriptions: 's' },
  ...overrides,
})

const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(projectRoot, 'schemas/contract.schema.json'), 'utf8')) as z.core.JSONSchema.JSONSchema)

/** What is wrong with a contract as JSON, by the published schema. */
export function faultsOf(contract: unknown): readonly string[] {
  const { error } = schema.safeParse(contract)
  return error?.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`) ?? []
}
