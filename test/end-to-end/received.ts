import { createHmac } from 'node:crypto'
import type { ReceivedRequest } from '../support/receiver.ts'

/** One request as the receiver of a webhook sees it. */
export type Received = {
  readonly request: ReceivedRequest
  readonly deliveryId: string
  readonly attempt: number
  /** Of the body. */
  readonly eventId: string
  /** `t` of the signature, epoch seconds. */
  readonly signedAt: number
  readonly signature: string
}

export function readRequest(request: ReceivedRequest): Received {
  const [, seconds, signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})/.exec(request.headers['x-webhook-signature'] ?? '') ?? []
  return {
    request, signature,
    deliveryId: request.headers['x-webhook-delivery'] ?? '',
    attempt: Number(request.headers['x-webhook-attempt']),
    eventId: (JSON.parse(request.body.toString()) as { id: string }).id,
    signedAt: Number(seconds),
  }
}

/** Whether the signature is that of this secret over this body and its own time. */
export function isSignedBy({ request, signedAt, signature }: Received, secret: string): boolean {
  return signature === createHmac('sha256', secret).update(`${signedAt}.`).update(request.body).digest('hex')
}

export type Tally = {
  /** Events that came at least once. */
  readonly events: ReadonlySet<string>
  /** Requests beyond the first of one attempt of one delivery. */
  readonly repeats: number
  /** For each of them the first one. */
  readonly repeated: readonly ReceivedRequest[]
  /** Events that came under more than one delivery id: always wrong, for one receiver. */
  readonly renamed: readonly string[]
}

/** What one endpoint has received so far, where each event is meant for it once. */
export function tallyOf(requests: readonly ReceivedRequest[]): Tally {
  const idsByEvent = new Map<string, Set<string>>()
  const firsts = new Map<string, ReceivedRequest>()
  const repeated: ReceivedRequest[] = []
  for (const received of requests.map(readRequest)) {
    const ids = idsByEvent.get(received.eventId) ?? new Set()
    idsByEvent.set(received.eventId, ids.add(received.deliveryId))
    const one = `${received.deliveryId} ${received.attempt}`
    const first = firsts.get(one)
    if (first) repeated.push(first)
    else firsts.set(one, received.request)
  }
  return { events: new Set(idsByEvent.keys()), repeats: repeated.length, repeated, renamed: [...idsByEvent].filter(([, ids]) => ids.size > 1).map(([event]) => event) }
}

/**
 * How long before `at` (epoch ms) the oldest of the requests came that were made again; 0 where none was. What a kill or an outage may
 * repeat is what was in flight then, and what was finished since the last commit, 100 ms before on a machine that keeps up.
 */
export function oldestRepeatMs({ repeated }: Tally, at: number): number {
  return Math.max(0, ...repeated.map(({ completedAt }) => at - completedAt))
}

/** The most of that, with all the time that a busy machine may take over a commit. */
export const mostRepeatedMs = 3_000
