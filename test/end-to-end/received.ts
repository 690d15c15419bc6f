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
  /** Events that came under more than one delivery id: always wrong, for one receiver. */
  readonly renamed: readonly string[]
}

/** What one endpoint has received so far, where each event is meant for it once. */
export function tallyOf(requests: readonly ReceivedRequest[]): Tally {
  const idsByEvent = new Map<string, Set<string>>()
  const tries = new Set<string>()
  let repeats = 0
  for (const received of requests.map(readRequest)) {
    const ids = idsByEvent.get(received.eventId) ?? new Set()
    idsByEvent.set(received.eventId, ids.add(received.deliveryId))
    const one = `${received.deliveryId} ${received.attempt}`
    if (tries.has(one)) repeats += 1
    tries.add(one)
  }
  return { events: new Set(idsByEvent.keys()), repeats, renamed: [...idsByEvent].filter(([, ids]) => ids.size > 1).map(([event]) => event) }
}
