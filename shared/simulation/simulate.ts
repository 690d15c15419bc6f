import { adaptiveFactor } from '../domain/backoff.ts'
import { classify } from '../domain/classify.ts'
import { decide, deliveryExpired } from '../domain/decide.ts'
import type { Delivery } from '../domain/delivery.ts'
import { createDueQueue } from '../domain/due-queue.ts'
import { createEndpointCap, loadSignOf } from '../domain/endpoint-cap.ts'
import { createFairQueue } from '../domain/fair-queue.ts'
import { createAttemptHistory } from '../domain/health.ts'
import { nextHop } from '../domain/hops.ts'
import type { Outcome } from '../domain/outcome.ts'
import { plannedDelayMs, type Policy } from '../domain/policy.ts'
import { answerOf, type SimulatedJitter, type SimulationModel } from './model.ts'

/** What became of all deliveries. Times in ms since the beginning. */
export type Simulated = {
  readonly jitter: SimulatedJitter
  readonly delivered: number
  /** By the state in which they ended. */
  readonly dead: Readonly<Record<'dlq' | 'permanent_failure' | 'expired', number>>
  /** From routing to success, of those delivered, in no order. */
  readonly timesToDeliveryMs: readonly number[]
  /** Of each delivery, in no order. */
  readonly attempts: readonly number[]
  /** When each request began, in order. */
  readonly requestsAt: readonly number[]
}

type Step = { readonly delivery: Delivery } | { readonly delivery: Delivery; readonly ended: { readonly request: number; readonly startedAt: number; readonly outcome: Outcome } }

/** Virtual time is put here, epoch ms: health counts whole seconds since 2020. */
const beginning = 1_600_000_000_000
const endpoint = 'ep_simulated'
const stepsPerTurn = 20_000

/**
 * One run in virtual time, by the code that decides in a delivery process: classification, backoff, jitter, health, the cap on requests
 * in flight, the order of what waits for it, and the hops in which a wait is spent. Not in it: parking, polls, other endpoints, restarts.
 * Yields now and then what share is settled, so that whoever runs it can do something else; returns the result.
 */
export function* simulate(model: SimulationModel, own: Policy, jitter: SimulatedJitter): Generator<number, Simulated> {
  const policy: Policy = jitter === 'none' ? own : { ...own, jitter }
  const steps = createDueQueue<Step>()
  const queue = createFairQueue<Delivery>()
  const cap = createEndpointCap(model.endpointCap)
  const history = createAttemptHistory()
  const dead = { dlq: 0, permanent_failure: 0, expired: 0 }
  const [timesToDeliveryMs, attempts, requestsAt]: [number[], number[], number[]] = [[], [], []]

  for (let index = 0; index < model.deliveries; index += 1) {
    const routedAt = beginning + Math.floor((index * model.overMs) / model.deliveries)
    steps.push(routedAt, { delivery: deliveryOf(`del_${model.seed}_${index}`, routedAt) })
  }

  const settle = (delivery: Delivery, state: 'success' | keyof typeof dead, at: number): void => {
    attempts.push(delivery.attemptsMade)
    if (state === 'success') timesToDeliveryMs.push(at - delivery.routedAt)
    else dead[state] += 1
  }

  const begin = (now: number): void => {
    for (let next = queue.next(() => cap.hasRoom()); next; next = queue.next(() => cap.hasRoom())) {
      const delivery = next.item
      if (deliveryExpired(delivery, now, model.expiryMs)) {
        settle(delivery, 'expired', now)
        continue
      }
      const request = cap.begin()
      const { outcome, durationMs } = answerOf(model, policy, { at: now - beginning, deliveryId: delivery.id, attempt: delivery.attemptsMade + 1 })
      requestsAt.push(now - beginning)
      steps.push(now + durationMs, { delivery, ended: { request, startedAt: now, outcome } })
    }
  }

  const end = (delivery: Delivery, { request, startedAt, outcome }: { readonly request: number; readonly startedAt: number; readonly outcome: Outcome }, now: number): void => {
    cap.end(request, loadSignOf(outcome))
    queue.unblock(endpoint)
    history.record(now, classify(outcome, policy.statusClasses) === 'delivered')
    // Health costs a sum over a hundred attempts, and only an adaptive policy asks for it.
    const health = policy.adaptive ? history.score(now) : 1
    const decision = decide({
      delivery, outcome, policy, health, startedAt, durationMs: now - startedAt, endedAt: now, localFailures: 0, internalFailures: 0,
    })
    if (decision.kind === 'success') settle(decision.delivery, 'success', now)
    else if (decision.kind === 'dead') settle(decision.delivery, decision.state, now)
    else if (decision.kind === 'gone') settle(decision.delivery, 'permanent_failure', now)
    else if (decision.kind === 'retry') {
      const wait = jitter === 'none' ? waitWithoutJitter(policy, decision.delivery.attemptsMade, health) : decision.waitMs
      steps.push(arrivalAt(now, now + wait, model.tiersMs), { delivery: { ...decision.delivery, lastWaitMs: wait } })
    } else throw new Error(`an answer of ${model.failure} is trouble of our own, which no endpoint has: simulate another`)
  }

  let done = 0
  while (steps.size > 0) {
    const now = steps.nextDueAt!
    const step = steps.pop()!
    if ('ended' in step) end(step.delivery, step.ended, now)
    else queue.push(endpoint, step.delivery, step.delivery.routedAt, 1)
    begin(now)
    done += 1
    if (done % stepsPerTurn === 0) yield attempts.length / model.deliveries
  }
  return { jitter, delivered: timesToDeliveryMs.length, dead, timesToDeliveryMs, attempts, requestsAt }
}

/** The same without turns. */
export function simulateAtOnce(model: SimulationModel, policy: Policy, jitter: SimulatedJitter): Simulated {
  const run = simulate(model, policy, jitter)
  for (;;) {
    const { done, value } = run.next()
    if (done) return value
  }
}

const waitWithoutJitter = (policy: Policy, attemptsMade: number, health: number): number =>
  Math.round(plannedDelayMs(policy, attemptsMade, policy.adaptive ? adaptiveFactor(health) : 1))

/** When a delivery is back that was sent to wait: after its hops, the last of which may end a little late. */
function arrivalAt(from: number, dueAt: number, tiersMs: readonly number[]): number {
  for (let at = from; ;) {
    const hop = nextHop(dueAt - at, tiersMs)
    if (hop.kind === 'now') return at
    if (hop.kind === 'soon') return dueAt
    at += hop.delayMs
  }
}

function deliveryOf(id: string, routedAt: number): Delivery {
  return {
    id, replay: 0, subscriptionId: 'sub_simulated', tenant: null, eventId: id, eventType: 'simulated', routedAt,
    origin: { topic: 'simulated', partition: 0, offset: 0, timestamp: routedAt }, sourceKey: null, sourceHeaders: [], body,
    attemptsMade: 0, lastWaitMs: 0, attempts: [],
  }
}

const body = Buffer.alloc(0)
