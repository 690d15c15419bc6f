import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createHttpClient, type HttpClient, type HttpClientOptions } from '../../shared/http/client.ts'
import type { Attempted, PostRequest } from '../../shared/http/post.ts'
import { startReceiver, type Receiver, type ReceiverBehaviour } from './receivers.ts'
import { until } from './until.ts'

/** What a delivery sends, as far as the client is concerned. The deadline is far off: it only matters where a test sets one. */
export const request = (url: string, changes: Partial<PostRequest> = {}): PostRequest => ({
  url,
  headers: ['Content-Type', 'application/json', 'User-Agent', 'posthouse/test'],
  body: Buffer.from('{"id":"evt_1"}'),
  deadlineMs: 10_000,
  excerptBytes: 1024,
  readLimitBytes: 16 * 1024,
  ...changes,
})

/** A client that is destroyed with the test. */
export function clientFor(t: TestContext, options: HttpClientOptions = {}): HttpClient {
  const http = createHttpClient(options)
  t.after(() => http.destroy())
  return http
}

/** A receiver that is closed with the test. */
export async function receiverFor(t: TestContext, behaviour: ReceiverBehaviour = {}): Promise<Receiver> {
  const receiver = await startReceiver(behaviour)
  t.after(() => receiver.close())
  return receiver
}

/** One attempt at a receiver that behaves like this, with a client of its own. */
export async function attemptAt(
  t: TestContext, behaviour: ReceiverBehaviour, changes: Partial<PostRequest> = {}, options: HttpClientOptions = {},
): Promise<{ attempted: Attempted; receiver: Receiver; http: HttpClient }> {
  const receiver = await receiverFor(t, behaviour)
  const http = clientFor(t, options)
  return { attempted: await http.post(request(receiver.url, changes)), receiver, http }
}

/** `status:200`, or `timeout/sent`: what most tests compare. */
export function shortOutcome({ outcome }: Attempted): string {
  return outcome.kind === 'response' ? `status:${outcome.status}` : `${outcome.error}/${outcome.phase}`
}

/** The excerpt of a response; fails the test on a failure. */
export function excerptIn({ outcome }: Attempted): string | null {
  assert.equal(outcome.kind, 'response', `expected a response, got ${JSON.stringify(outcome)}`)
  return outcome.kind === 'response' ? outcome.excerpt : null
}

export async function untilNoSockets(http: HttpClient): Promise<void> {
  await until(() => http.stats().sockets === 0, { message: () => `the client to close its sockets; open: ${http.stats().sockets}` })
}
