import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { answerHeaders, completeAnswer, problem, type Answer, type FullAnswer } from './answer.ts'
import { durationMs, type Duration } from './duration.ts'
import { asError } from './errors.ts'
import type { Claim, HeldClaim, Store, StoredAnswer } from './store.ts'

export type DedupeOptions = {
  /**
   * How long an id is remembered after it was done. Default 60 days, because posthouse may send the same delivery that late: it
   * attempts for up to 14 days, keeps dead letters for 30, and attempts a replayed one for up to 14 again, which makes 58. With a
   * window that is shorter than what the sender does by itself (83 hours in the standard schedule), the last retries of what was
   * done, but whose answer got lost, would run it once more; 24 hours, often seen elsewhere, is too short for that.
   */
  readonly ttl?: Duration
  /**
   * After this long a call that has not ended counts as crashed, and a repeat runs instead of it. Longer than the handler ever
   * takes. Default 60 s: posthouse waits 30 s for an answer, and a minute or more before its first retry.
   */
  readonly lock?: Duration
  /** Goes before each id, where deliveries of several senders or routes share a store: letters, digits, `_ . -`. */
  readonly scope?: string
  /**
   * Which status of the handler ends the matter, so that repeats get it again. Default 200 to 299, as posthouse counts success.
   * All else is a failure and releases the claim: a recorded 429 or 400 would be answered to every retry, and to the replay of a
   * dead letter after you have mended what was wrong.
   */
  readonly isFinal?: (status: number) => boolean
}

export type DedupeRequest = {
  /** The delivery id, of a request whose signature was verified; else anyone can use up ids. */
  readonly id: string
  /** The bytes as they came. */
  readonly body: Uint8Array
  /** Of this call, for logs. Default a random UUID. */
  readonly requestId?: string
}

/**
 * ran       the handler ran, and its answer is what repeats will get
 * failed    the handler ran and answered with a failure: the claim is released
 * replayed  it ran before: its answer, again
 * running   it is running elsewhere: 409
 * conflict  the id came with another body before: 422
 * overtaken the handler ran past its lock, and another call has taken over: 409, and what it answered counts for nothing
 */
export type Outcome = 'ran' | 'failed' | 'replayed' | 'running' | 'conflict' | 'overtaken'

/** What to send, and how it came about. */
export type DedupeResult = FullAnswer & {
  readonly outcome: Outcome
  readonly requestId: string
  /** Of the call that ran or runs; null where that is this one. */
  readonly originalRequestId: string | null
  /**
   * Why the store could not be told what became of it, for your log; the answer is the handler's all the same. A repeat within
   * the lock gets 409, a later one runs again.
   */
  readonly storeError: Error | null
}

/**
 * Runs the handler unless the id is done or running. Rejects with what the handler throws, once the claim is released, and with
 * what the store throws when it cannot be asked at all (nothing has run then).
 */
export type Dedupe = (request: DedupeRequest, handler: (claim: Claim) => Answer | void | Promise<Answer | void>) => Promise<DedupeResult>

/** Longest wait of setTimeout. */
const longestLockMs = 2 ** 31 - 1
/** Waits between tries to tell the store that the handler is done; forgetting that means running it twice. */
const finishWaitsMs = [100, 400]

/**
 * Lets each id run once: at least once, and, once it has succeeded, not again within `ttl`. Never two at once, as long as none
 * takes longer than `lock`. A process that dies after the work is done and before the store knows it has done it in vain: the work
 * is done again, unless both are in one transaction (see the README).
 */
export function dedupe(
  store: Store,
  { ttl = '60d', lock = '60s', scope = 'webhook', isFinal = (status) => status >= 200 && status <= 299 }: DedupeOptions = {},
): Dedupe {
  const ttlMs = durationMs(ttl, 'ttl')
  const lockMs = durationMs(lock, 'lock')
  if (!Number.isFinite(ttlMs)) throw new RangeError('ttl must be finite')
  if (lockMs > longestLockMs) throw new RangeError('lock must be at most 24 days')
  if (ttlMs < lockMs) throw new RangeError('ttl must not be shorter than lock')
  if (!/^[\w.-]{1,100}$/.test(scope)) throw new TypeError('scope must be 1 to 100 letters, digits, underscores, dots and hyphens')

  return async ({ id, body, requestId = randomUUID() }, handler) => {
    if (typeof id !== 'string' || id === '' || id.length > 255) throw new TypeError('dedupe needs an id of 1 to 255 characters')
    const key = `${scope}/${id}`
    const fingerprint = createHash('sha256').update(body).digest('hex')
    // Before the store begins to count, so that the signal is never late.
    const lockEndsAt = performance.now() + lockMs
    const claimed = await store.claim({ key, fingerprint, requestId, lockMs, ttlMs })
    if (claimed.state === 'finished') return replay(requestId, claimed.requestId, claimed.answer)
    if (claimed.state === 'running') return stillRunning(requestId, claimed.requestId, claimed.retryAfterMs)
    if (claimed.state === 'conflict') return conflict(requestId, claimed.requestId)
    return run(store, { key, token: claimed.token, ttlMs, requestId }, lockEndsAt, handler, isFinal)
  }
}

async function run(
  store: Store, held: HeldClaim & { readonly requestId: string }, lockEndsAt: number, handler: Parameters<Dedupe>[1], isFinal: (status: number) => boolean,
): Promise<DedupeResult> {
  const { requestId } = held
  const { answer, failure } = await callHandler(held, lockEndsAt, handler)
  if (answer === null || !isFinal(answer.status)) {
    const storeError = await release(store, held)
    if (answer !== null) return handlerAnswer('failed', requestId, answer, storeError)
    if (storeError === null) throw failure
    throw new AggregateError([failure, storeError], `the handler failed, and its claim is held until its lock is over: ${failure.message}`)
  }
  const finished = await finish(store, held, answer)
  // Again a second later it gets the answer of the one that took over, or is told how long that one may still run.
  return finished === false ? overtaken(requestId) : handlerAnswer('ran', requestId, answer, finished === true ? null : finished)
}

type Called = { readonly answer: StoredAnswer; readonly failure: null } | { readonly answer: null; readonly failure: Error }

async function callHandler(
  held: HeldClaim & { readonly requestId: string }, lockEndsAt: number, handler: Parameters<Dedupe>[1],
): Promise<Called> {
  const controller = new AbortController()
  const lockOver = (): void => controller.abort(new Error(`the lock of ${held.key} is over: it may run elsewhere from now on`))
  const timer = setTimeout(lockOver, Math.max(0, lockEndsAt - performance.now()))
  try {
    return { answer: completeAnswer(await handler({ ...held, signal: controller.signal })), failure: null }
  } catch (thrown) {
    return { answer: null, failure: asError(thrown) }
  } finally {
    clearTimeout(timer)
  }
}

/** Whether the claim was still ours; an error where the store could not be told, in three tries. */
async function finish(store: Store, held: HeldClaim, answer: StoredAnswer): Promise<boolean | Error> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await store.finish(held, answer)
    } catch (thrown) {
      const waitMs = finishWaitsMs[tries]
      if (waitMs === undefined) return asError(thrown)
      await delay(waitMs)
    }
  }
}

/** Once only: what is not released is free when its lock is over. */
async function release(store: Store, held: HeldClaim): Promise<Error | null> {
  try {
    await store.release(held)
    return null
  } catch (thrown) {
    return asError(thrown)
  }
}

function handlerAnswer(outcome: 'ran' | 'failed', requestId: string, answer: StoredAnswer, storeError: Error | null): DedupeResult {
  const headers = { ...answerHeaders(answer), 'Request-Id': requestId }
  return { outcome, status: answer.status, headers, body: answer.body, requestId, originalRequestId: null, storeError }
}

function replay(requestId: string, originalRequestId: string, answer: StoredAnswer): DedupeResult {
  const headers = {
    ...answerHeaders(answer), 'Idempotent-Replayed': 'true', 'Request-Id': requestId, 'Original-Request-Id': originalRequestId,
  }
  return { outcome: 'replayed', status: answer.status, headers, body: answer.body, requestId, originalRequestId, storeError: null }
}

function stillRunning(requestId: string, originalRequestId: string, retryAfterMs: number): DedupeResult {
  const answer = problem(409, 'The same delivery is being handled', {
    detail: 'An earlier request with this id has not ended yet. Try again after the time given.', originalRequestId,
  }, {
    'Retry-After': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))), 'Request-Id': requestId, 'Original-Request-Id': originalRequestId,
  })
  return { outcome: 'running', ...answer, requestId, originalRequestId, storeError: null }
}

function conflict(requestId: string, originalRequestId: string): DedupeResult {
  const answer = problem(422, 'The id was used with another body', {
    detail: 'An earlier request with this id had another body. The same id must come with the same bytes.', originalRequestId,
  }, { 'Request-Id': requestId, 'Original-Request-Id': originalRequestId })
  return { outcome: 'conflict', ...answer, requestId, originalRequestId, storeError: null }
}

function overtaken(requestId: string): DedupeResult {
  const answer = problem(409, 'Another request took over', {
    detail: 'This one ran past its lock, and another one with the same id took over.', originalRequestId: requestId,
  }, { 'Retry-After': '1', 'Request-Id': requestId, 'Original-Request-Id': requestId })
  return { outcome: 'overtaken', ...answer, requestId, originalRequestId: null, storeError: null }
}
