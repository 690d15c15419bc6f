import { deliveryId } from '../../shared/domain/ids.ts'
import type { Arrival } from './received-line.ts'

/** An event that Kafka has acknowledged to its producer. */
export type SentEvent = {
  readonly id: string
  /** Epoch ms, when the producer had the acknowledgement. */
  readonly acknowledgedAt: number
  /** Of the bytes that were produced, hex. */
  readonly sha256: string
}

export type Subscribed = { readonly endpoint: string; readonly subscriptionId: string }

export type EndpointAccount = {
  readonly expected: number
  readonly delivered: number
  readonly deadLettered: number
  /** Requests that reached the receiver. */
  readonly attempts: number
  /** From the producer's acknowledgement of the event until the endpoint has answered 2xx; null where none has. */
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

export type Account = EndpointAccount & {
  readonly events: number
  readonly subscriptions: number
  /** Neither delivered nor dead yet, while it may still become so. */
  readonly waiting: number
  /** Neither, and nothing is under way any more. */
  readonly lost: number
  /** Requests answered with 2xx beyond the first one of a delivery. */
  readonly repeated: number
  readonly signatureFailures: number
  readonly endpoints: Readonly<Record<string, EndpointAccount>>
}

/**
 * Compares three sources that know nothing of each other, as sets of delivery ids: what must be there (computed here from the event ids
 * acknowledged to the producer and the ids of the subscriptions), what the receiver logged, and what was read back from the dead-letter topic.
 */
export type Ledger = {
  acknowledged(event: SentEvent): void
  arrived(arrival: Arrival): void
  died(deliveryId: string): void
  /** `isOver`: nothing is under way any more, so what is missing is lost and not waiting. */
  account(isOver: boolean): Account
  /** Deliveries that came with other bytes than the event was produced with; they do not count as delivered. */
  altered(): number
}

type Expected = { readonly id: string; readonly event: SentEvent }
type Part = EndpointAccount & { readonly missing: number; readonly repeated: number }

/** `source`: the events topic, which is part of every delivery id. */
export function createLedger({ source, subscriptions }: { readonly source: string; readonly subscriptions: readonly Subscribed[] }): Ledger {
  const events = new Set<string>()
  const expected = new Map<string, Expected[]>(subscriptions.map(({ endpoint }) => [endpoint, []]))
  const arrivals = new Map<string, Arrival[]>()
  const dead = new Set<string>()
  let signatureFailures = 0

  const isRightBody = (event: SentEvent, { sha256 }: Arrival): boolean => sha256 === event.sha256
  const isDelivered = ({ status }: Arrival): boolean => status !== null && status >= 200 && status <= 299
  const arrivalsOf = (id: string): readonly Arrival[] => arrivals.get(id) ?? []

  function partOf(own: readonly Expected[], latencies: number[]): Part {
    const ownLatencies: number[] = []
    let delivered = 0
    let deadLettered = 0
    let attempts = 0
    let repeated = 0
    let missing = 0
    for (const { id, event } of own) {
      const all = arrivalsOf(id)
      const good = all.filter((one) => isDelivered(one) && isRightBody(event, one))
      attempts += all.length
      if (good[0]) {
        delivered += 1
        repeated += good.length - 1
        ownLatencies.push(Math.max(0, Math.min(...good.map(({ answeredAt }) => answeredAt)) - event.acknowledgedAt))
      }
      if (dead.has(id)) deadLettered += 1
      if (!good[0] && !dead.has(id)) missing += 1
    }
    latencies.push(...ownLatencies)
    return { expected: own.length, delivered, deadLettered, attempts, ...percentilesOf(ownLatencies), missing, repeated }
  }

  return {
    acknowledged(event) {
      if (events.has(event.id)) return
      events.add(event.id)
      for (const { endpoint, subscriptionId } of subscriptions) {
        expected.get(endpoint)?.push({ id: deliveryId({ tenant: null, source, eventId: event.id, subscriptionId }), event })
      }
    },
    arrived(arrival) {
      if (!arrival.isVerified) signatureFailures += 1
      const earlier = arrivals.get(arrival.deliveryId)
      if (earlier) earlier.push(arrival)
      else arrivals.set(arrival.deliveryId, [arrival])
    },
    died: (id) => void dead.add(id),

    account(isOver) {
      const latencies: number[] = []
      const parts = [...expected].map(([endpoint, own]) => [endpoint, partOf(own, latencies)] as const)
      const sum = (of: (part: Part) => number): number => parts.reduce((total, [, part]) => total + of(part), 0)
      const missing = sum((part) => part.missing)
      return {
        events: events.size, subscriptions: subscriptions.length, expected: sum((part) => part.expected),
        delivered: sum((part) => part.delivered), deadLettered: sum((part) => part.deadLettered),
        waiting: isOver ? 0 : missing, lost: isOver ? missing : 0, repeated: sum((part) => part.repeated),
        attempts: sum((part) => part.attempts), signatureFailures, ...percentilesOf(latencies),
        endpoints: Object.fromEntries(parts.map(([endpoint, part]) => [endpoint, publicPart(part)])),
      }
    },
    altered: () => [...expected.values()].flat().filter(({ id, event }) => arrivalsOf(id).some((one) => !isRightBody(event, one))).length,
  }
}

function publicPart({ expected, delivered, deadLettered, attempts, p50Ms, p99Ms }: Part): EndpointAccount {
  return { expected, delivered, deadLettered, attempts, p50Ms, p99Ms }
}

/** Every expected delivery is at its receiver or in the dead-letter topic, and nobody doubted a signature. */
export function isClosed({ expected, waiting, lost, signatureFailures }: Account): boolean {
  return expected > 0 && waiting === 0 && lost === 0 && signatureFailures === 0
}

function percentilesOf(latenciesMs: readonly number[]): { readonly p50Ms: number | null; readonly p99Ms: number | null } {
  const sorted = Float64Array.from(latenciesMs).sort()
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) }
}

/** Nearest rank: the smallest value that at least this share of all values is not above; null of none. */
export function percentile(sorted: ArrayLike<number>, share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null
}
