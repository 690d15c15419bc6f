import type { Config } from '../shared/config/config.ts'
import { formatDuration } from '../shared/domain/duration.ts'
import { policyNotes } from '../shared/domain/policy-check.ts'
import { describePolicy, resolvePolicy, type Policy } from '../shared/domain/policy.ts'
import type { StoredSubscription } from '../shared/domain/subscription.ts'
import { nominalMs, worstCaseMs } from '../shared/domain/timetable.ts'
import { viewOf } from '../shared/subscriptions/view.ts'
import type { Output } from './output.ts'

export function printSubscriptions(output: Output, subscriptions: readonly StoredSubscription[]): void {
  output.rows(subscriptions.map(viewOf), [
    { title: 'ID', text: ({ id }) => id },
    { title: 'STATE', text: ({ state }) => state },
    { title: 'TENANT', text: ({ tenant }) => tenant ?? '-' },
    { title: 'HOST', text: ({ host }) => host },
    { title: 'ENDPOINT', text: ({ endpointKey }) => endpointKey },
    { title: 'UPDATED', text: ({ updatedAt }) => `${updatedAt.slice(0, 19)}Z` },
    { title: 'EVENT TYPES', text: ({ eventTypes }) => eventTypes.join(' ') },
  ])
}

/** One subscription after a change that everybody understands: a line of the list, or the object itself. */
export function printChanged(output: Output, subscription: StoredSubscription): void {
  if (output.format === 'table') printSubscriptions(output, [subscription])
  else output.record(viewOf(subscription), [])
}

/** One subscription in full. `extra` is what only this command may show: a new secret, the whole URL. */
export function printSubscription(
  output: Output, subscription: StoredSubscription, config: Pick<Config, 'policy' | 'deliveryExpiryMs'>, extra: Readonly<Record<string, string>> = {},
): void {
  const view = viewOf(subscription)
  const policy = resolvePolicy(subscription.policy, config.policy)
  const notes = policyNotes(subscription.policy, config.policy, config.deliveryExpiryMs)
  const secrets = view.secrets.map(({ createdAt, expiresAt }) => `of ${createdAt}${expiresAt === null ? '' : `, until ${expiresAt}`}`)
  output.record({ ...view, ...extra, nominalMs: nominalMs(policy), worstCaseMs: worstCaseMs(policy), policyNotes: notes }, [
    ['id', view.id],
    ...Object.entries(extra),
    ['state', view.state],
    ...(view.tenant === null ? [] : [['tenant', view.tenant] as const]),
    ['host', view.host],
    ['endpoint', view.endpointKey],
    ['event types', view.eventTypes.join(' ')],
    ['signature', view.signatureScheme],
    ['secrets', secrets.join('\n')],
    ...(view.headerNames.length === 0 ? [] : [['headers', view.headerNames.join(' ')] as const]),
    ['retries', describeRetries(policy)],
    ...notes.map((note) => ['', `note: ${note}`] as const),
    ...(view.description === null ? [] : [['description', view.description] as const]),
    ['created', view.createdAt],
    ['updated', view.updatedAt],
    ['version', String(view.version)],
  ])
}

/** A policy in words, with the time it takes and may take. */
export function describeRetries(policy: Policy): string {
  const [inAll, atWorst] = [nominalMs(policy), worstCaseMs(policy)].map((ms) => formatDuration(roundUp(ms)))
  return `${describePolicy(policy)}; ${inAll} in all, at worst ${atWorst}`
}

/** To a whole unit that people can read: minutes below two hours, hours above. */
function roundUp(ms: number): number {
  const unit = ms > 2 * 3_600_000 ? 3_600_000 : ms > 120_000 ? 60_000 : 1_000
  return Math.ceil(ms / unit) * unit
}
