import { deadLetterKey, parseDeadLetterKey } from './key.ts'
import type { DeadLetterIndex, NamedKey } from './scan.ts'

/**
 * The dead letters that ids stand for, as keys. A delivery's id stands for all of its dead letters that are not cleared, or for the
 * latest one where all are; `missing`: ids nothing was found of.
 */
export function chooseNamed(index: DeadLetterIndex, ids: readonly string[]): { readonly keys: readonly string[]; readonly missing: readonly string[] } {
  const byDelivery = Map.groupBy(index.named.values(), ({ id }) => id.deliveryId)
  const missing: string[] = []
  const keys = ids.flatMap((text) => {
    if (parseDeadLetterKey(text) !== null && index.named.has(text)) return [text]
    const chosen = latestOf(byDelivery.get(text) ?? [])
    if (chosen.length === 0) missing.push(text)
    return chosen.map(({ id }) => deadLetterKey(id))
  })
  return { keys: [...new Set(keys)], missing }
}

function latestOf(named: readonly NamedKey[]): readonly NamedKey[] {
  const open = named.filter(({ cleared }) => cleared === null)
  return open.length > 0 ? open : named.toSorted((a, b) => b.id.replay - a.id.replay).slice(0, 1)
}
