import { problem, type Answer, type FullAnswer } from './answer.ts'
import { readNodeBody, type NodeRequest } from './node-body.ts'
import { checkHandlerOptions, failure, receive, type HandlerOptions } from './receive.ts'
import type { Webhook } from './webhook.ts'

/** What is used of node:http's ServerResponse. */
export type NodeResponse = {
  writeHead(status: number, headers: Record<string, string>): unknown
  end(body: Uint8Array): unknown
}

/** Does the work and says what to answer; nothing is 200. What it throws becomes 500, and the sender tries again. */
export type NodeHandle = (webhook: Webhook) => Answer | void | Promise<Answer | void>

/**
 * A request listener for `node:http`, and a route handler for Express and what else hands on its objects. Reads the raw body,
 * verifies, runs `handle` once for each delivery where `dedupe` is given, and answers. The promise resolves when that is done,
 * and does not reject. Throws where the options cannot be meant.
 */
export function nodeHandler(options: HandlerOptions, handle: NodeHandle): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  const { maxBodyBytes } = checkHandlerOptions(options)
  return async (request, response) => {
    try {
      const answer = await answerTo(request, maxBodyBytes, options, handle)
      if (answer !== null) send(response, answer)
    } catch (thrown) {
      send(response, failure(thrown, null, options))
    }
  }
}

/** Null where there is nobody to answer any more. */
async function answerTo(request: NodeRequest, maxBodyBytes: number, options: HandlerOptions, handle: NodeHandle): Promise<FullAnswer | null> {
  if (request.method !== 'POST') return problem(405, 'Webhooks are POSTed', {}, { Allow: 'POST' })
  const read = await readNodeBody(request, maxBodyBytes)
  if (read.kind === 'cut-off') return null
  if (read.kind === 'whole') return receive(request.headers, read.body, options, handle)
  // The rest of the body may still be under way, and no request can be read behind it.
  return problem(413, `The body is larger than ${maxBodyBytes} bytes`, {}, { Connection: 'close' })
}

function send(response: NodeResponse, { status, headers, body }: FullAnswer): void {
  response.writeHead(status, { ...headers, ...(status === 204 || status === 304 ? {} : { 'Content-Length': String(body.byteLength) }) })
  response.end(status === 204 || status === 304 ? new Uint8Array() : body)
}
