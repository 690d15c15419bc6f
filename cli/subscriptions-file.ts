import { z } from 'zod'
import { noPolicy } from '../shared/domain/policy.ts'
import { signatureSchemes, subscriptionStates } from '../shared/domain/subscription.ts'
import type { SubscriptionChange } from '../shared/subscriptions/draft.ts'
import { policyFromShape, policyShape } from '../shared/subscriptions/policy-shape.ts'
import { CliError } from './cli-error.ts'
import { withoutUndefined } from './policy-options.ts'

/** One subscription as a file wants it. `id` null: it is found by tenant and URL. */
export type WantedSubscription = {
  /** `subscriptions[3]`, for messages. */
  readonly where: string
  readonly id: string | null
  readonly tenant: string | null
  readonly change: SubscriptionChange & { readonly url: string; readonly eventTypes: readonly string[] }
}

/** A text, or the name of an environment variable that has it, so that the file can be kept where secrets may not. */
const secretText = z.union([z.string(), z.strictObject({ env: z.string().min(1) })])

const subscription = z.strictObject({
  id: z.string().min(1).optional(),
  tenant: z.string().min(1).nullable().optional(),
  url: z.string(),
  eventTypes: z.array(z.string()),
  state: z.enum(subscriptionStates).optional(),
  signatureScheme: z.enum(signatureSchemes).optional(),
  secret: secretText.optional(),
  headers: z.record(z.string(), secretText).optional(),
  policy: policyShape.nullable().optional(),
  description: z.string().nullable().optional(),
})

const fileShape = z.union([z.array(subscription), z.strictObject({ subscriptions: z.array(subscription) })])

type Entry = z.infer<typeof subscription>

/** The subscriptions of a JSON file. `env` has what `{"env": NAME}` stands for. @throws CliError that lists every fault, but no value */
export function parseSubscriptionsFile(
  text: string, file: string, env: Readonly<Record<string, string | undefined>>,
): readonly WantedSubscription[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    // The parser's message quotes the file, which may hold secrets.
    throw new CliError('usage', `${file} is not JSON`, 'give {"subscriptions": [{"url": "https://...", "eventTypes": ["order.*"]}]}')
  }
  // Of one form or the other, as the faults of a union would be those of both.
  const parsed = (Array.isArray(json) ? fileShape.options[0] : fileShape.options[1]).safeParse(json)
  if (!parsed.success) {
    const placeOf = (path: readonly PropertyKey[]): string =>
      path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('').replace(/^\./, '')
    const faults = parsed.error.issues.map(({ path, message }) => `  ${placeOf(path)}: ${message}`)
    throw new CliError('usage', [`${file} is not a file of subscriptions`, ...faults].join('\n'))
  }
  const entries = Array.isArray(parsed.data) ? parsed.data : parsed.data.subscriptions
  const missing = new Set<string>()
  const textOf = (value: z.infer<typeof secretText>): string => {
    if (typeof value === 'string') return value
    const found = env[value.env]
    if (!found) missing.add(value.env)
    return found ?? ''
  }
  const wanted = entries.map((entry, index) => wantedFrom(entry, `subscriptions[${index}]`, textOf))
  if (missing.size > 0) {
    throw new CliError(
      'usage', `${file} takes values from the environment that it has not: ${[...missing].join(', ')}`,
    )
  }
  return wanted
}

function wantedFrom(entry: Entry, where: string, textOf: (value: z.infer<typeof secretText>) => string): WantedSubscription {
  const { id, tenant, url, eventTypes, state, signatureScheme, secret, headers, description } = entry
  return {
    where, id: id ?? null, tenant: tenant ?? null,
    change: {
      url, eventTypes,
      ...withoutUndefined({
        state, signatureScheme, description,
        secret: secret === undefined ? undefined : textOf(secret),
        headers: headers && Object.entries(headers).map(([name, value]) => ({ name, value: textOf(value) })),
        policy: entry.policy === undefined ? undefined : entry.policy === null ? noPolicy : policyFromShape(entry.policy),
      }),
    },
  }
}
