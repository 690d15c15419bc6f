import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge, type EndpointView, type Verdict } from '../../services/delivery/judge.ts'
import { decide, type Decision } from '../../shared/domain/decide.ts'
import type { Delivery } from '../../shared/domain/delivery.ts'
import { errorTable } from '../../shared/domain/error-codes.ts'
import type { Outcome } from '../../shared/domain/outcome.ts'
import { defaultPolicy, noPolicy } from '../../shared/domain/policy.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { sampleContract } from './sample.ts'

const { states, policy } = sampleContract()
const stateOf = (name: string) => states.find(({ state }) => state === name) ?? assert.fail(`there is no state ${name}`)
const exitsOf = (name: string) => stateOf(name).exits.map(({ on, to }) => `${on} ${to}`)

const delivery: Delivery = {
  id: 'del_a', replay: 0, subscriptionId: 'sub_a', tenant: null, eventId: 'evt', eventType: 't', routedAt: 1_000,
  origin: { topic: 'e', partition: 0, offset: 0, timestamp: 0 }, sourceKey: null, sourceHeaders: [], body: Buffer.from('{}'),
  attemptsMade: 0, lastWaitMs: 0, attempts: [],
}

const outcomes: readonly Outcome[] = [
  ...Array.from({ length: 500 }, (_, index): Outcome => ({ kind: 'response', status: 100 + index, retryAfter: [], date: null, excerpt: null })),
  ...errorTable.flatMap(({ error }) => (['before_send', 'sent'] as const).map((phase): Outcome => ({ kind: 'failure', error, phase, detail: '' }))),
]

/** The exit of `attempting` that a decision is. */
function exitOf(decision: Decision): string {
  if (decision.kind === 'success') return 'delivered success'
  if (decision.kind === 'retry') return 'failed waiting'
  if (decision.kind === 'gone') return 'gone permanent_failure'
  if (decision.kind === 'local') return 'local attempting'
  return `${decision.reason === 'permanent_failure' ? 'permanent' : decision.reason} ${decision.state}`
}

test('whatever an attempt returns leads out by one of the exits of attempting, and each of them is used', () => {
  const seen = new Set<string>()
  for (const outcome of outcomes) {
    for (let attemptsMade = 0; attemptsMade < policy.maxAttempts; attemptsMade += 1) {
      for (const internalFailures of [0, 2]) {
        const decision = decide({
          delivery: { ...delivery, attemptsMade }, outcome, policy: defaultPolicy, health: 1, startedAt: 0, durationMs: 0, endedAt: 0, localFailures: 0, internalFailures,
        })
        const exit = exitOf(decision)
        assert.ok(exitsOf('attempting').includes(exit), `${JSON.stringify(outcome)} after ${attemptsMade} attempts: ${exit}`)
        seen.add(exit)
      }
    }
  }
  assert.deepEqual([...seen].sort(), exitsOf('attempting').sort())
})

const subscription: StoredSubscription = {
  id: 'sub_a', tenant: null, url: 'https://a.example/', endpointKey: 'ep_a', eventTypes: ['*'], state: 'active', signatureScheme: 'stripe',
  secrets: [], headers: [], policy: noPolicy, description: null, createdAt: 1, updatedAt: 1, offset: 1, appendedAt: 500,
}
const well: EndpointView = { goneAt: null, goneWrittenAt: null, isThrottled: () => false }

/** The exit of `idle` and `waiting` that a verdict is. */
function exitBefore(verdict: Verdict): string {
  if (verdict.kind === 'attempt') return 'start attempting'
  if (verdict.kind === 'park' || verdict.kind === 'unknown') return 'parked waiting'
  if (verdict.kind === 'cancelled') return `${verdict.reason === 'gone' ? 'gone_before' : verdict.reason} cancelled`
  return `${verdict.reason === 'gone' ? 'gone_earlier' : verdict.reason} ${verdict.state}`
}

test('whatever is found before an attempt leads out by one of the exits of idle and waiting, and each of them is used', () => {
  const lookups = [
    undefined, 'deleted' as const, subscription, { ...subscription, tenant: 'b' }, { ...subscription, state: 'paused' as const }, { ...subscription, state: 'disabled' as const },
  ]
  const endpoints: EndpointView[] = [well, { ...well, isThrottled: () => true }, { ...well, goneAt: 500, goneWrittenAt: 2_000 }, { ...well, goneAt: 500, goneWrittenAt: 900 }]
  const seen = new Set<string>()
  for (const lookup of lookups) {
    for (const endpoint of endpoints) {
      for (const now of [1_000, 1_000 + 14 * 86_400_000]) {
        seen.add(exitBefore(judge({ delivery, lookup, endpointOf: () => endpoint, now, expiryMs: 14 * 86_400_000 })))
      }
    }
  }
  assert.deepEqual([...seen].sort(), exitsOf('idle').sort())
  assert.deepEqual(exitsOf('waiting').map((exit) => exit.replace('timer', 'start')).sort(), exitsOf('idle').sort())
})

test('terminal states have no exit, the others have some, and every state is reached', () => {
  assert.deepEqual(states.filter(({ isTerminal }) => isTerminal).map(({ state }) => state).sort(), ['cancelled', 'dlq', 'expired', 'permanent_failure', 'success'])
  const reached = new Set(['idle', ...states.flatMap(({ exits }) => exits.map(({ to }) => to))])
  for (const { state, isTerminal, exits, entryActions } of states) {
    assert.equal(exits.length === 0, isTerminal, state)
    assert.ok(entryActions.length > 0 && reached.has(state), state)
  }
})

test('what ends without success leaves a dead letter, unless nobody wants it any more', () => {
  for (const { state, isTerminal, entryActions } of states.filter(({ state }) => state !== 'success')) {
    if (isTerminal) assert.equal(entryActions.some((action) => action.startsWith('write the dead letter to `d`')), state !== 'cancelled', state)
  }
})
