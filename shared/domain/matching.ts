import { maxEventTypeLength, ownTypePrefix } from './event.ts'

const patternCharacters = /^[\u0021-\u007e]+$/
const prefixEnding = '.*'

/** Says why a pattern is refused, or null. Allowed: an exact type, `prefix.*`, `*`; also for our own `posthouse.` types. */
export function checkPattern(text: string): string | null {
  if (text === '*') return null
  if (text === '') return 'the pattern is empty'
  if (text.length > maxEventTypeLength) return `the pattern is longer than ${maxEventTypeLength} characters`
  if (!patternCharacters.test(text)) return 'the pattern contains something other than printable ASCII without spaces'
  const rest = prefixOf(text) ?? text
  if (rest === '') return 'the pattern .* has no prefix: write * for every type'
  if (rest.includes('*')) return 'a * may only stand alone or at the end after a dot, as in order.*'
  return null
}

/**
 * Whether a pattern matches an event type; case matters. `*` matches everything but our own `posthouse.` types,
 * `order.*` every type that begins `order.` at any depth but not `order` itself, anything else only the same text.
 */
export function matches(pattern: string, type: string): boolean {
  if (pattern === '*') return !type.startsWith(ownTypePrefix)
  const prefix = prefixOf(pattern)
  return prefix === null ? pattern === type : type.startsWith(`${prefix}.`)
}

function prefixOf(pattern: string): string | null {
  return pattern.endsWith(prefixEnding) ? pattern.slice(0, -prefixEnding.length) : null
}

export type Interest = { readonly tenant: string | null; readonly patterns: readonly string[] }

/** Whether one subscription wants an event: what the index finds among many. */
export function isWanted({ tenant, patterns }: Interest, event: { readonly tenant: string | null; readonly type: string }): boolean {
  return tenant === event.tenant && patterns.some((pattern) => matches(pattern, event.type))
}

/** Which subscriptions want an event type. Holds ids only; `set` replaces what the id had before. */
export type SubscriptionIndex = {
  readonly set: (id: string, interest: Interest) => void
  readonly delete: (id: string) => void
  /** Ids of the tenant's subscriptions with a matching pattern, each once, in no order. Null is a tenant of its own. */
  readonly find: (tenant: string | null, type: string) => string[]
  readonly size: () => number
}

/** Ids by what they match; Maps, because `__proto__` and `constructor` are legal event types. */
type TenantIndex = {
  readonly exact: Map<string, Set<string>>
  readonly prefix: Map<string, Set<string>>
  readonly every: Set<string>
}

/**
 * An index whose cost for one event depends on the number of matches and of dots in the type, not on the number of
 * subscriptions: one look-up for the type, one for each of its dotted prefixes, and the tenant's `*` list.
 */
export function createSubscriptionIndex(): SubscriptionIndex {
  const interests = new Map<string, Interest>()
  const tenants = new Map<string | null, TenantIndex>()

  function remove(id: string): void {
    const interest = interests.get(id)
    if (interest === undefined) return
    interests.delete(id)
    const index = tenants.get(interest.tenant)
    if (index === undefined) return
    for (const pattern of interest.patterns) {
      if (pattern === '*') index.every.delete(id)
      else removeFrom(mapFor(index, pattern), prefixOf(pattern) ?? pattern, id)
    }
    if (index.exact.size + index.prefix.size + index.every.size === 0) tenants.delete(interest.tenant)
  }

  return {
    set(id, { tenant, patterns }) {
      remove(id)
      interests.set(id, { tenant, patterns: [...patterns] })
      const index = tenants.get(tenant) ?? { exact: new Map(), prefix: new Map(), every: new Set() }
      tenants.set(tenant, index)
      for (const pattern of patterns) {
        if (pattern === '*') index.every.add(id)
        else addTo(mapFor(index, pattern), prefixOf(pattern) ?? pattern, id)
      }
    },
    delete: remove,
    find(tenant, type) {
      const index = tenants.get(tenant)
      if (index === undefined) return []
      const groups: Set<string>[] = []
      const exact = index.exact.get(type)
      if (exact !== undefined) groups.push(exact)
      for (let dot = type.indexOf('.'); dot !== -1 && index.prefix.size > 0; dot = type.indexOf('.', dot + 1)) {
        const group = index.prefix.get(type.slice(0, dot))
        if (group !== undefined) groups.push(group)
      }
      if (index.every.size > 0 && matches('*', type)) groups.push(index.every)
      return groups.length === 1 ? [...groups[0]!] : [...new Set(groups.flatMap((group) => [...group]))]
    },
    size: () => interests.size,
  }
}

function mapFor(index: TenantIndex, pattern: string): Map<string, Set<string>> {
  return prefixOf(pattern) === null ? index.exact : index.prefix
}

function addTo(map: Map<string, Set<string>>, key: string, id: string): void {
  const ids = map.get(key)
  if (ids === undefined) map.set(key, new Set([id]))
  else ids.add(id)
}

function removeFrom(map: Map<string, Set<string>>, key: string, id: string): void {
  const ids = map.get(key)
  ids?.delete(id)
  if (ids?.size === 0) map.delete(key)
}
