import { alertRules, describeAlertCondition, type AlertRule } from '../domain/alert-rules.ts'
import { deliveredShare } from '../domain/delivered-share.ts'
import { classify, type FailureClass } from '../domain/classify.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Policy } from '../domain/policy.ts'
import type { SignatureScheme, SubscriptionState } from '../domain/subscription.ts'
import { attemptsOf, backoffTermsOf, totalTimeBudgetOf, type AttemptTerms, type BackoffTerms, type TotalTimeBudget } from './backoff.ts'
import { classificationOf, type ClassificationRule } from './classification.ts'
import { deadLettersOf, type DeadLetterTerms } from './dead-letters.ts'
import { handOffsOf, type HandOff, type HandOffTopics } from './hand-offs.ts'
import { idempotencyOf, type IdempotencyTerms } from './idempotency.ts'
import { statesOf, type StateRow } from './states.ts'
import { inWords } from './words.ts'

/** Whose contract it is. Of a URL only the host, as it may carry a token. */
export type ContractSubject =
  | { readonly kind: 'defaults' }
  | {
      readonly kind: 'subscription'
      readonly id: string
      readonly tenant: string | null
      readonly host: string
      readonly endpointKey: string
      readonly eventTypes: readonly string[]
      readonly state: SubscriptionState
    }

export type ContractInput = {
  readonly version: string
  readonly subject: ContractSubject
  /** With every default filled in. */
  readonly policy: Policy
  readonly scheme: SignatureScheme
  readonly expiryMs: number
  readonly tiersMs: readonly number[]
  readonly endpointCap: { readonly start: number; readonly most: number }
  readonly topics: HandOffTopics
  readonly deadLettersKeptMs: number
}

/** What both sides may rely on; durations in ms. Its JSON Schema is schemas/contract.schema.json. */
export type RetryContract = {
  readonly contractVersion: 1
  readonly posthouse: string
  readonly subject: ContractSubject
  readonly context: {
    readonly kind: string
    readonly deadline: { readonly attemptMs: number; readonly deliveryMs: number; readonly meaning: string }
    readonly blastRadius: readonly string[]
  }
  readonly policy: Omit<Policy, 'statusClasses'> & { readonly statusClasses: readonly { readonly status: number; readonly class: FailureClass }[] }
  readonly classification: readonly ClassificationRule[]
  readonly states: readonly StateRow[]
  readonly backoff: BackoffTerms
  readonly attempts: readonly AttemptTerms[]
  readonly totalTimeBudget: TotalTimeBudget
  readonly guarantee: {
    readonly argument: readonly string[]
    readonly formula: string
    readonly deliveredShare: readonly { readonly availability: number; readonly attempts: number; readonly share: number }[]
  }
  readonly idempotency: IdempotencyTerms
  readonly deadLetters: DeadLetterTerms
  readonly alerts: readonly ContractAlert[]
  readonly handOffs: readonly HandOff[]
}

export type ContractAlert = Pick<AlertRule, 'name' | 'severity' | 'measure' | 'fires' | 'threshold' | 'unit' | 'windowMs' | 'forMs' | 'meaning'> & {
  readonly condition: string
  readonly runbook: string
}

/** Pure. Each part is asked of the code that decides, so that it cannot say anything else than what happens. */
export function createContract(input: ContractInput): RetryContract {
  const { policy, expiryMs, topics, deadLettersKeptMs } = input
  const { statusClasses, ...numbers } = policy
  const backoff = backoffTermsOf(policy, input.tiersMs)
  return {
    contractVersion: 1, posthouse: input.version, subject: input.subject,
    context: contextOf(input),
    policy: { ...numbers, statusClasses: [...statusClasses].map(([status, failureClass]) => ({ status, class: failureClass })) },
    classification: classificationOf(policy),
    states: statesOf({ maxAttempts: policy.maxAttempts, expiryMs, topics }),
    backoff,
    attempts: attemptsOf(policy),
    totalTimeBudget: totalTimeBudgetOf(policy, backoff, expiryMs),
    guarantee: {
      argument: atLeastOnce, formula: '1 - (1 - availability)^attempts, where attempts succeed or fail independently',
      deliveredShare: shareTable(policy.maxAttempts),
    },
    idempotency: idempotencyOf({ policy, scheme: input.scheme, expiryMs, deadLettersKeptMs }),
    deadLetters: deadLettersOf({ topic: topics.dlq, retentionMs: deadLettersKeptMs }),
    alerts: alertRules.map((rule: AlertRule) => ({
      name: rule.name, severity: rule.severity, measure: rule.measure, condition: describeAlertCondition(rule), fires: rule.fires, threshold: rule.threshold,
      unit: rule.unit, windowMs: rule.windowMs, forMs: rule.forMs, meaning: rule.meaning, runbook: `docs/runbook.md#${rule.name.toLowerCase()}`,
    })),
    handOffs: handOffsOf(topics),
  }
}

function contextOf({ policy, expiryMs, endpointCap }: ContractInput): RetryContract['context'] {
  return {
    kind: 'one event for one subscription, sent as an HTTP POST; asynchronous, at least once, in no order',
    deadline: {
      attemptMs: policy.timeoutMs, deliveryMs: expiryMs,
      meaning: `one attempt has ${inWords(policy.timeoutMs)} in all; ${inWords(expiryMs)} after it was routed or replayed a delivery is not tried again`,
    },
    blastRadius: [
      `an endpoint that is down costs its own deliveries only: it has ${endpointCap.start} to ${endpointCap.most} requests in flight, halved on timeout, 429 and 503`,
      'what waits, waits in topics: neither memory nor the deliveries of others grow with it',
      'a process that dies repeats what was in flight, under the same keys; Kafka that is away stops everything and loses nothing',
      `a dead letter ends one delivery, never a subscription${
        classify(goneAnswer, policy.statusClasses) === 'permanent' ? '; only 410 ends the subscriptions of its endpoint, until they are written again' : ''}`,
    ],
  }
}

const goneAnswer: Outcome = { kind: 'response', status: 410, retryAfter: [], date: null, excerpt: null }

/** Why every event reaches every subscription that wants it, or a dead letter. */
const atLeastOnce: readonly string[] = [
  'An event counts once Kafka has acknowledged it to its producer; all in-sync replicas have it then.',
  'The router commits it only when each of its deliveries is acknowledged. If it dies before, they are made again, under the same ids.',
  'Delivery commits a delivery only when all that its outcome causes is acknowledged: the attempt, and the retry or the dead letter. If it dies before, the attempt is made again.',
  'Retry-tier commits a waiting delivery only when it has been written to where it goes next.',
  'So at any moment an unsettled delivery is in one topic at least, and is read from there; if the endpoint answers 2xx to one of its attempts it is delivered, else it ends where it can be seen.',
]

const availabilities = [0.5, 0.9, 0.99, 0.999] as const

/** Up to the policy's own number of attempts. */
function shareTable(maxAttempts: number): RetryContract['guarantee']['deliveredShare'] {
  const counts = [...new Set([1, 2, 3, 5, 8, maxAttempts])].filter((count) => count <= maxAttempts).sort((a, b) => a - b)
  return availabilities.flatMap((availability) => counts.map((attempts) => ({ availability, attempts, share: deliveredShare(availability, attempts) })))
}
