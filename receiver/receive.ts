import { randomUUID } from 'node:crypto'
import process from 'node:process'
import { answerHeaders, completeAnswer, problem, type Answer, type FullAnswer } from './answer.ts'
import type { Dedupe } from './dedupe.ts'
import { durationMs } from './duration.ts'
import { asError } from './errors.ts'
import type { HeaderSource } from './headers.ts'
import { checkedSecrets, verify, type VerifyOptions } from './verify.ts'
import { webhookOf, type Webhook } from './webhook.ts'

export type HandlerOptions = Omit<VerifyOptions, 'now'> & {
  /** What `dedupe(store)` made. Without it every request that is verified runs the handler. */
  readonly dedupe?: Dedupe
  /** What is to run once, where that is not the delivery id: the id of the event in the body, say, which is signed. */
  readonly idOf?: (webhook: Webhook) => string
  /** Larger bodies get 413. Default 1 MiB; posthouse sends at most 512 KiB. */
  readonly maxBodyBytes?: number
  /**
   * Gets what went wrong on this side, in the handler, the store or the set-up; the sender gets 500 and learns no more. The webhook
   * is null where it had not been verified. Default: a warning of the process.
   */
  readonly onError?: (error: Error, webhook: Webhook | null) => void
  /** Gets why a request was refused with 401, as a sentence. Default: nothing. */
  readonly onRefused?: (message: string) => void
}

const defaultMaxBodyBytes = 1024 * 1024

/** Throws where the options cannot be meant: when the route is set up, not at the first request. */
export function checkHandlerOptions({ secrets, tolerance, maxBodyBytes = defaultMaxBodyBytes }: HandlerOptions): { readonly maxBodyBytes: number } {
  checkedSecrets(secrets)
  if (tolerance !== undefined) durationMs(tolerance, 'tolerance')
  if (!(maxBodyBytes >= 1)) throw new RangeError('maxBodyBytes must be at least 1')
  return { maxBodyBytes }
}

/** Verifies, runs once, and says what to answer. */
export async function receive(
  headers: HeaderSource, body: Uint8Array, options: HandlerOptions, handle: (webhook: Webhook) => Answer | void | Promise<Answer | void>,
): Promise<FullAnswer> {
  const verification = verify({ headers, body }, options)
  if (!verification.ok) {
    options.onRefused?.(verification.message)
    return problem(401, 'The signature was not accepted', { reason: verification.reason })
  }
  const webhook = webhookOf(verification, headers, body, randomUUID())
  try {
    if (options.dedupe === undefined) {
      const answer = completeAnswer(await handle(webhook))
      return { status: answer.status, headers: { ...answerHeaders(answer), 'Request-Id': webhook.requestId }, body: answer.body }
    }
    const id = options.idOf === undefined ? webhook.id : options.idOf(webhook)
    if (id === null) return problem(400, 'There is no delivery id', { detail: 'Send it as X-Webhook-Delivery or Idempotency-Key.' })
    const result = await options.dedupe({ id, body, requestId: webhook.requestId }, (claim) => handle({ ...webhook, claim }))
    if (result.storeError !== null) reportError(result.storeError, webhook, options)
    return { status: result.status, headers: result.headers, body: result.body }
  } catch (thrown) {
    return failure(thrown, webhook, options)
  }
}

/** Reports what went wrong, and answers 500: for the sender a reason to try again. */
export function failure(thrown: unknown, webhook: Webhook | null, options: HandlerOptions): FullAnswer {
  reportError(asError(thrown), webhook, options)
  return problem(500, 'The webhook could not be handled', {}, webhook === null ? {} : { 'Request-Id': webhook.requestId })
}

function reportError(error: Error, webhook: Webhook | null, { onError = (error: Error) => process.emitWarning(error) }: HandlerOptions): void {
  onError(error, webhook)
}
