import type { StoredSubscription, SubscriptionState } from '../domain/subscription.ts'

/** What people do to the state of a subscription. */
export const stateVerbs = ['pause', 'resume', 'disable', 'enable'] as const
export type StateVerb = (typeof stateVerbs)[number]

type StateChange = {
  readonly to: SubscriptionState
  /** From these it is refused. */
  readonly refusedFrom: readonly SubscriptionState[]
  /** Also written when it is in that state already: a record that is newer revives an endpoint that answered 410. */
  readonly writesAlways: boolean
}

const changes: Readonly<Record<StateVerb, StateChange>> = {
  pause: { to: 'paused', refusedFrom: ['disabled'], writesAlways: false },
  resume: { to: 'active', refusedFrom: ['disabled'], writesAlways: false },
  disable: { to: 'disabled', refusedFrom: [], writesAlways: false },
  enable: { to: 'active', refusedFrom: [], writesAlways: true },
}

/** What a verb comes to. `refused`: it is disabled, which only `enable` ends, as what was under way is gone. */
export type JudgedChange = { readonly kind: 'write'; readonly state: SubscriptionState } | { readonly kind: 'nothing' } | { readonly kind: 'refused' }

export function judgeStateChange({ state }: Pick<StoredSubscription, 'state'>, verb: StateVerb): JudgedChange {
  const { to, refusedFrom, writesAlways } = changes[verb]
  if (refusedFrom.includes(state)) return { kind: 'refused' }
  return state === to && !writesAlways ? { kind: 'nothing' } : { kind: 'write', state: to }
}
