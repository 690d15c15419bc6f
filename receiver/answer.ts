import type { StoredAnswer } from './store.ts'

/** What a handler returns. */
export type Answer = {
  /** Default 200. 200 to 299 is "done, and never again"; anything else lets the sender try again. */
  readonly status?: number
  /** Default `text/plain; charset=utf-8` where the body is text. */
  readonly contentType?: string
  readonly body?: string | Uint8Array
}

/** What is sent. */
export type FullAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const noBytes = new Uint8Array()

/** With the defaults filled in. Throws a TypeError where it is no answer, which counts as a failure of the handler. */
export function completeAnswer(answer: Answer | void): StoredAnswer {
  const { status = 200, contentType, body } = answer ?? {}
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`the handler answered with the status ${JSON.stringify(status)}: give a number from 200 to 599`)
  }
  if (body === undefined) return { status, contentType: contentType ?? null, body: noBytes }
  if (typeof body === 'string') return { status, contentType: contentType ?? 'text/plain; charset=utf-8', body: Buffer.from(body, 'utf8') }
  if (body instanceof Uint8Array) return { status, contentType: contentType ?? null, body }
  throw new TypeError('the handler answered with a body that is neither text nor bytes: use JSON.stringify, and contentType')
}

export function answerHeaders({ contentType }: StoredAnswer): Record<string, string> {
  return contentType === null ? {} : { 'Content-Type': contentType }
}

/** An error as RFC 9457 has it. `about:blank` as the type is left out, as the RFC allows. */
export function problem(
  status: number, title: string, fields: Readonly<Record<string, string>> = {}, headers: Readonly<Record<string, string>> = {},
): FullAnswer {
  return {
    status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
    body: Buffer.from(JSON.stringify({ title, status, ...fields }), 'utf8'),
  }
}
