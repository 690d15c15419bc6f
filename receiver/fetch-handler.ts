import { problem, type Answer, type FullAnswer } from './answer.ts'
import { checkHandlerOptions, failure, receive, type HandlerOptions } from './receive.ts'
import type { Webhook } from './webhook.ts'

/** As for `node:http`; may also return a Response, of which status, content type and body are sent, and no other header. */
export type FetchHandle = (webhook: Webhook) => Answer | Response | void | Promise<Answer | Response | void>

/** Statuses that have no body; Response's constructor refuses one. */
const bodiless = new Set([204, 205, 304])

/**
 * A handler from Request to Response, for Hono, Next.js, Deno, Bun and the like. Reads the raw body, verifies, runs `handle` once
 * for each delivery where `dedupe` is given. The promise does not reject. Throws where the options cannot be meant.
 */
export function fetchHandler(options: HandlerOptions, handle: FetchHandle): (request: Request) => Promise<Response> {
  const { maxBodyBytes } = checkHandlerOptions(options)
  return async (request) => {
    try {
      return await respond(request, maxBodyBytes, options, handle)
    } catch (thrown) {
      return responseOf(failure(thrown, null, options))
    }
  }
}

async function respond(request: Request, maxBodyBytes: number, options: HandlerOptions, handle: FetchHandle): Promise<Response> {
  if (request.method !== 'POST') return responseOf(problem(405, 'Webhooks are POSTed', {}, { Allow: 'POST' }))
  const body = await readFetchBody(request, maxBodyBytes)
  if (body === null) return responseOf(problem(413, `The body is larger than ${maxBodyBytes} bytes`))
  return responseOf(await receive(request.headers, body, options, async (webhook) => {
    const answered = await handle(webhook)
    return answered instanceof Response ? answerOf(answered) : answered
  }))
}

/** Null where it is larger than the limit; no more than that is held. */
async function readFetchBody(request: Request, maxBytes: number): Promise<Uint8Array | null> {
  if (request.bodyUsed) throw new TypeError('the body was read before the webhook handler could: hand it the request unread, or a clone')
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = request.body?.getReader()
  for (;;) {
    const part = await reader?.read()
    if (part === undefined || part.done) return Buffer.concat(chunks, bytes)
    chunks.push(part.value)
    bytes += part.value.byteLength
    if (bytes > maxBytes) {
      await reader?.cancel()
      return null
    }
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const contentType = response.headers.get('content-type')
  const body = new Uint8Array(await response.arrayBuffer())
  return { status: response.status, body, ...(contentType === null ? {} : { contentType }) }
}

function responseOf({ status, headers, body }: FullAnswer): Response {
  return new Response(bodiless.has(status) ? null : new Uint8Array(body), { status, headers })
}
