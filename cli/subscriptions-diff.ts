import { isDeepStrictEqual } from 'node:util'
import { normaliseUrl } from '../shared/domain/endpoint-url.ts'
import { noPolicy, resolvePolicy, type SubscriptionPolicy } from '../shared/domain/policy.ts'
import type { StoredSubscription, Subscription } from '../shared/domain/subscription.ts'
import { draftChange, draftNew, type NewSubscription, type Rules, type SubscriptionChange } from '../shared/subscriptions/draft.ts'
import { hostOf } from '../shared/subscriptions/view.ts'
import { describeRetries } from './subscription-view.ts'
import type { WantedSubscription } from './subscriptions-file.ts'

/** One thing to be done so that what there is becomes what is wanted. */
export type Step =
  | ({ readonly action: 'create'; readonly wanted: NewSubscription; readonly drafted: Subscription } & Described)
  | ({ readonly action: 'update'; readonly present: StoredSubscription; readonly change: SubscriptionChange } & Described)
  | ({ readonly action: 'delete'; readonly present: StoredSubscription } & Described)

/** For people: without secrets, header values and URLs. */
type Described = { readonly changes: readonly string[] }

export type Diff = { readonly steps: readonly Step[]; readonly unchanged: number; readonly problems: readonly string[] }

/**
 * What a file of subscriptions changes. A subscription is found by its id where the file gives one, else by tenant and URL; fields
 * that the file leaves out stay as they are. Whatever the file has no entry for is deleted with `prune` and else left alone. `now`
 * epoch ms.
 */
export function diffSubscriptions(
  wanted: readonly WantedSubscription[],
  present: readonly StoredSubscription[],
  { prune, rules, now }: { readonly prune: boolean; readonly rules: Rules; readonly now: number },
): Diff {
  const problems: string[] = []
  const steps: Step[] = []
  const claimed = new Map<string, string>()
  const seenKeys = new Map<string, string>()
  const byId = new Map(present.map((one) => [one.id, one]))
  const named = new Set(wanted.flatMap(({ id }) => (id === null ? [] : [id])))
  let unchanged = 0

  for (const entry of wanted) {
    const report = (problem: string): void => { problems.push(`${entry.where}: ${problem}`) }
    const found = entry.id === null
      ? findByUrl(entry, present.filter(({ id }) => !named.has(id)), rules, seenKeys, report)
      : findById(entry, byId, report)
    if (found === 'wrong') continue
    if (found === null) {
      const created = stepToCreate(entry, rules, now, report)
      if (created) steps.push(created)
      continue
    }
    const earlier = claimed.get(found.id)
    if (earlier !== undefined) report(`it is the same subscription as ${earlier}`)
    claimed.set(found.id, entry.where)
    const step = stepToUpdate(entry, found, rules, now, report)
    if (step) steps.push(step)
    else unchanged++
  }
  for (const one of prune ? present : []) {
    if (!claimed.has(one.id)) steps.push({ action: 'delete', present: one, changes: [] })
  }
  return { steps, unchanged, problems }
}

type Found = StoredSubscription | null | 'wrong'

function findById(
  { id, tenant }: WantedSubscription, byId: ReadonlyMap<string, StoredSubscription>, report: (problem: string) => void,
): Found {
  const found = byId.get(id ?? '')
  if (!found) {
    report(`there is no subscription ${id}: ids are made by posthouse, leave it out to create one`)
    return 'wrong'
  }
  if (found.tenant === tenant) return found
  const whose = found.tenant === null ? 'no tenant' : `tenant ${found.tenant}`
  report(`subscription ${id} is of ${whose}, and that cannot change: delete it and create another`)
  return 'wrong'
}

function findByUrl(
  { where, tenant, change }: WantedSubscription,
  present: readonly StoredSubscription[],
  rules: Rules,
  seen: Map<string, string>,
  report: (problem: string) => void,
): Found {
  const normalised = normaliseUrl(change.url, { allowHttp: rules.allowsHttp })
  if (!normalised.ok) return null // Said when it is drafted.
  const key = JSON.stringify([tenant, normalised.url])
  const earlier = seen.get(key)
  if (earlier !== undefined) {
    report(`it has the tenant and the URL of ${earlier}: put their event types into one, or name each by its id`)
    return 'wrong'
  }
  seen.set(key, where)
  const found = present.filter((one) => one.tenant === tenant && one.url === normalised.url)
  if (found.length <= 1) return found[0] ?? null
  const ids = found.map(({ id }) => id).join(', ')
  report(`${found.length} subscriptions have this tenant and URL (${ids}): say by its id which one is meant`)
  return 'wrong'
}

function stepToCreate(
  { tenant, change }: WantedSubscription, rules: Rules, now: number, report: (problem: string) => void,
): Step | null {
  const wanted = { ...change, tenant }
  const drafted = draftNew(wanted, rules, now)
  if ('subscription' in drafted) {
    const { eventTypes, state, policy } = drafted.subscription
    const isOwn = !isDeepStrictEqual(policy, noPolicy)
    const changes = [
      `event types ${eventTypes.join(' ')}`, ...(state === 'active' ? [] : [state]), ...(isOwn ? [policyInWords(policy, rules)] : []),
    ]
    return { action: 'create', wanted, drafted: drafted.subscription, changes }
  }
  for (const problem of drafted.problems) report(problem)
  return null
}

/** null when it is as wanted, or cannot be made so. */
function stepToUpdate(
  { change }: WantedSubscription, present: StoredSubscription, rules: Rules, now: number,
  report: (problem: string) => void,
): Step | null {
  // Writing a secret again that is active would cut off the others of a rotation.
  const isKnown = present.secrets.some(({ secret, expiresAt }) => secret === change.secret && (expiresAt === null || expiresAt > now))
  const { secret, ...rest } = change
  const asked: SubscriptionChange = isKnown || secret === undefined ? rest : { ...rest, secret }
  const drafted = draftChange(present, asked, rules, now)
  if ('problems' in drafted) {
    for (const problem of drafted.problems) report(problem)
    return null
  }
  const changes = changesBetween(present, drafted.subscription, asked.secret !== undefined, rules)
  return changes.length === 0 ? null : { action: 'update', present, change: asked, changes }
}

/** In words, without secrets, header values and URLs. */
function changesBetween(before: Subscription, after: Subscription, isNewSecret: boolean, rules: Rules): readonly string[] {
  const changes: string[] = []
  if (before.url !== after.url) changes.push(`URL (host ${hostOf(before.url)} to ${hostOf(after.url)})`)
  const types = [...before.eventTypes.filter((one) => !after.eventTypes.includes(one)).map((one) => `-${one}`),
    ...after.eventTypes.filter((one) => !before.eventTypes.includes(one)).map((one) => `+${one}`)]
  if (types.length > 0) changes.push(`event types ${types.join(' ')}`)
  if (before.state !== after.state) changes.push(`${before.state} to ${after.state}`)
  if (before.signatureScheme !== after.signatureScheme) changes.push(`signature ${before.signatureScheme} to ${after.signatureScheme}`)
  if (isNewSecret) changes.push('secret')
  if (!isDeepStrictEqual(sorted(before.headers), sorted(after.headers))) {
    changes.push(`headers (${after.headers.map(({ name }) => name).join(' ') || 'none'})`)
  }
  if (!isDeepStrictEqual(before.policy, after.policy)) changes.push(policyInWords(after.policy, rules))
  if (before.description !== after.description) changes.push('description')
  return changes
}

/** With its worst case: that is what its receivers have to reckon with. */
const policyInWords = (own: SubscriptionPolicy, { policyDefaults }: Rules): string =>
  `policy (${describeRetries(resolvePolicy(own, policyDefaults))})`

const sorted = (headers: Subscription['headers']): Subscription['headers'] => [...headers].sort((a, b) => (a.name < b.name ? -1 : 1))
