import { classify, type FailureClass } from '../domain/classify.ts'
import { decide } from '../domain/decide.ts'
import type { Delivery } from '../domain/delivery.ts'
import { errorTable } from '../domain/error-codes.ts'
import type { AttemptPhase, Outcome } from '../domain/outcome.ts'
import type { Policy } from '../domain/policy.ts'
import { statusTable, unknownStatusReason } from '../domain/status-table.ts'

/** What follows: `retry` while attempts are left, `try_again` without counting an attempt. */
export type Consequence = 'success' | 'retry' | 'permanent_failure' | 'try_again'

type Classified = {
  readonly class: 'delivered' | FailureClass
  readonly leadsTo: Consequence
  /** What an ambiguous one is taken for; null for the others. */
  readonly default: 'retry' | null
  readonly reason: string | null
}

/** Statuses `from` to `to`, both included; `isOverride`: the subscription or the installation set it, the published table says otherwise. */
export type StatusRule = Classified & { readonly on: 'status'; readonly from: number; readonly to: number; readonly isOverride: boolean }
/** `phase`: whether any byte of the request may have left. */
export type ErrorRule = Classified & { readonly on: 'error'; readonly error: string; readonly phase: AttemptPhase; readonly meaning: string }
export type ClassificationRule = StatusRule | ErrorRule

/** Every status a status line can have, and every error: asked of `classify` and `decide` one by one. */
export function classificationOf(policy: Policy): readonly ClassificationRule[] {
  return [...statusRules(policy), ...errorRules(policy)]
}

const lastStatus = 999

function statusRules(policy: Policy): StatusRule[] {
  const rules: StatusRule[] = []
  for (let status = 100; status <= lastStatus; status += 1) {
    const rule: StatusRule = { on: 'status', from: status, to: status, ...classified(responseOf(status), policy, reasonOf(status, policy)), isOverride: policy.statusClasses.has(status) }
    const last = rules.at(-1)
    if (last && last.class === rule.class && last.leadsTo === rule.leadsTo && last.reason === rule.reason && last.isOverride === rule.isOverride) {
      rules[rules.length - 1] = { ...last, to: status }
    } else rules.push(rule)
  }
  return rules
}

function reasonOf(status: number, { statusClasses }: Policy): string | null {
  if (status >= 200 && status <= 299) return null
  const published = statusTable.find(({ from, to }) => status >= from && status <= to)
  return statusClasses.has(status)
    ? `set by the policy; otherwise ${published?.failureClass ?? 'ambiguous'}`
    : published?.reason ?? unknownStatusReason
}

const phases: readonly AttemptPhase[] = ['before_send', 'sent']

function errorRules(policy: Policy): ErrorRule[] {
  return errorTable.flatMap(({ error, meaning, reason }) => phases.map((phase): ErrorRule => ({
    on: 'error', error, phase, ...classified({ kind: 'failure', error, phase, detail: meaning }, policy, reason), meaning,
  })))
}

function classified(outcome: Outcome, policy: Policy, reason: string | null): Classified {
  const ofClass = classify(outcome, policy.statusClasses)
  return { class: ofClass, leadsTo: consequenceOf(outcome, policy), default: ofClass === 'ambiguous' ? 'retry' : null, reason }
}

/** What becomes of a delivery that has attempts left: its state after this outcome. */
function consequenceOf(outcome: Outcome, policy: Policy): Consequence {
  const decision = decide({
    delivery: probe, outcome, policy: { ...policy, maxAttempts: 2 }, health: 1, startedAt: 0, durationMs: 0, endedAt: 0, localFailures: 0, internalFailures: 0,
  })
  if (decision.kind === 'success') return 'success'
  if (decision.kind === 'retry') return 'retry'
  if (decision.kind === 'local') return 'try_again'
  return 'permanent_failure'
}

/** Its own rule for a status: RFC 9110 has three digits, so 600 to 999 may be read too. */
const responseOf = (status: number): Outcome => ({ kind: 'response', status, retryAfter: [], date: null, excerpt: null })

const probe: Delivery = {
  id: 'del_', replay: 0, subscriptionId: '', tenant: null, eventId: '', eventType: '', routedAt: 0,
  origin: { topic: '', partition: 0, offset: 0, timestamp: 0 }, sourceKey: null, sourceHeaders: [], body: Buffer.alloc(0),
  attemptsMade: 0, lastWaitMs: 0, attempts: [],
}
