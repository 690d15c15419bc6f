import type { Dispatcher } from 'undici'
import { errorFromException } from '../domain/classify.ts'
import type { ErrorCode } from '../domain/error-codes.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Connections, PooledConnection } from './connections.ts'
import { excerptOf } from './excerpt.ts'

export type PostRequest = {
  /** Normalised (endpoint-url.ts). */
  readonly url: string
  /** Names and values in turn; values are sent as latin1. Host, Content-Length and Connection are undici's to write. */
  readonly headers: readonly string[]
  readonly body: Buffer
  /** For everything: waiting for a socket, DNS, connect, TLS, sending, headers, body. */
  readonly deadlineMs: number
  /** Ends the attempt as `shutting_down`. */
  readonly signal?: AbortSignal
  /** How much of the response body to keep as text; 0 keeps none. */
  readonly excerptBytes: number
  /** How much of the response body to read before the socket is destroyed. */
  readonly readLimitBytes: number
}

export type Attempted = {
  readonly outcome: Outcome
  readonly durationMs: number
  /** Whether the socket the outcome came from had carried a request before. */
  readonly reusedSocket: boolean
  /** Whether the request was sent twice, because a used socket turned out to be dead. */
  readonly redone: boolean
}

type ResponseHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

/**
 * One POST under one deadline, from waiting for a socket to its outcome; also the handler undici reports to.
 *
 * The outcome is decided by the first final status line: whatever the body does after it (drips, breaks off, never ends), and
 * whatever else happens, the response stands. Before it, the first of error, deadline and abort decides. `settle` is called
 * once; what undici still reports afterwards is ignored. The connection goes back to the pool only where the exchange ended
 * in order, else it is destroyed.
 */
export class Post implements Dispatcher.DispatchHandler {
  private readonly startedAt = performance.now()
  private readonly request: PostRequest
  private readonly origin: string
  private readonly path: string
  private readonly connections: Connections
  private readonly onSettled: (post: Post, attempted: Attempted) => void
  private readonly timer: NodeJS.Timeout
  private stopWaiting: (() => void) | null = null
  private pooled: PooledConnection | null = null
  private isSettled = false
  /** Sticky over a redo: the receiver may have seen the first one. */
  private isSent = false
  private isRedone = false
  private isSocketReused = false
  /** bytesRead of the socket when the request was written: more than that means response bytes came. */
  private bytesReadBefore = 0
  private status: number | null = null
  private responseHeaders: ResponseHeaders = {}
  private bodyBytes = 0
  private excerptChunks: Buffer[] = []

  constructor(request: PostRequest, url: URL, connections: Connections, onSettled: (post: Post, attempted: Attempted) => void) {
    this.request = request
    this.origin = url.origin
    this.path = url.pathname + url.search
    this.connections = connections
    this.onSettled = onSettled
    this.timer = setTimeout(onDeadline, request.deadlineMs, this)
  }

  start(): void {
    const pooled = this.connections.take(this.origin)
    if (pooled !== null) this.onConnection(pooled)
    else this.stopWaiting = this.connections.wait(this.origin, this)
  }

  /** Ends it now: as its response where a status was read, else as a failure of this code. */
  end(error: ErrorCode, detail: string): void {
    if (this.isSettled) return
    this.settleAndDiscard(this.response() ?? { kind: 'failure', error, phase: this.isSent ? 'sent' : 'before_send', detail })
  }

  expire(): void {
    const within = `within ${this.request.deadlineMs} ms`
    if (this.isSent) this.end('timeout', `no status ${within}`)
    else if (this.pooled === null) this.end('timeout', `no connection to this host became free ${within}`)
    else this.end('connect_timeout', `no connection ${within}`)
  }

  // From the connection pool.

  onConnection(pooled: PooledConnection): void {
    this.stopWaiting = null
    this.pooled = pooled
    const { headers, body } = this.request
    pooled.connection.client.dispatch({ method: 'POST', path: this.path, headers: headers as string[], body }, this)
  }

  // From undici. Errors it finds in what it was given come as onResponseError too.

  onRequestStart(): void {
    const { connection } = this.pooled!
    this.isSent = true
    this.isSocketReused = connection.requestsOnSocket > 0
    this.bytesReadBefore = connection.socket?.bytesRead ?? 0
    connection.requestsOnSocket += 1
    connection.isAwaitingStatus = true
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (this.isSettled) return
    // Nothing final follows a 101 (RFC 9110 section 15.2.2), and undici's parser trips over it once this returns.
    if (status === 101) return this.end('protocol', 'the answer switched protocols, which was not asked for')
    // Any number of interim responses may come first (RFC 9110 section 15.2).
    if (status >= 100 && status <= 199) return
    this.status = status
    this.responseHeaders = headers
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isSettled) return
    const room = this.request.excerptBytes - this.bodyBytes
    // Copied: a slice would keep the socket's whole buffer of 64 KiB.
    if (room > 0) this.excerptChunks.push(Buffer.from(chunk.subarray(0, room)))
    this.bodyBytes += chunk.length
    if (this.bodyBytes >= this.request.readLimitBytes) this.settleAndDiscard(this.response()!)
  }

  onResponseEnd(): void {
    if (this.isSettled) return
    const pooled = this.pooled!
    this.settle(this.response()!)
    // An early answer (413) to a body that is still on its way: the next request would stand in line behind the rest of it.
    if ((pooled.connection.socket?.writableLength ?? 0) > 0) this.connections.discard(pooled, endOfAttempt)
    else this.connections.release(pooled)
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.isSettled) return
    const response = this.response()
    if (response === null && this.mayRedo(error)) return this.redo()
    this.settleAndDiscard(response ?? { kind: 'failure', ...errorFromException(error, this.isSent) })
  }

  /**
   * RFC 9112 section 9.3.1: either side may close an idle connection at any time, so a used socket can die under a request
   * that the server never read. Where not one byte of a response has come, it is sent once more.
   */
  private mayRedo(error: Error): boolean {
    if (this.isRedone || !this.isSocketReused || this.pooled === null) return false
    const hasAnswered = (this.pooled.connection.socket?.bytesRead ?? 0) > this.bytesReadBefore
    return !hasAnswered && closedByPeer.has((error as NodeJS.ErrnoException).code ?? '')
  }

  private redo(): void {
    this.isRedone = true
    this.onConnection(this.connections.replace(this.pooled!, endOfAttempt))
  }

  private response(): Outcome | null {
    if (this.status === null) return null
    const retryAfter = this.responseHeaders['retry-after']
    const date = this.responseHeaders['date']
    return {
      kind: 'response',
      status: this.status,
      retryAfter: retryAfter === undefined ? [] : typeof retryAfter === 'string' ? [retryAfter] : retryAfter,
      date: (typeof date === 'string' ? date : date?.[0]) ?? null,
      excerpt: this.request.excerptBytes === 0 ? null : excerptOf(this.excerptChunks, this.request.excerptBytes),
    }
  }

  private settle(outcome: Outcome): void {
    this.isSettled = true
    clearTimeout(this.timer)
    this.stopWaiting?.()
    this.onSettled(this, {
      outcome,
      durationMs: Math.round(performance.now() - this.startedAt),
      reusedSocket: this.isSocketReused,
      redone: this.isRedone,
    })
  }

  private settleAndDiscard(outcome: Outcome): void {
    this.settle(outcome)
    if (this.pooled !== null) this.connections.discard(this.pooled, endOfAttempt)
  }
}

// Timers run before sockets are read: after the process was busy past the deadline, an answer may lie there unread. It is
// read before the immediate runs.
const onDeadline = (post: Post): void => void setImmediate(() => post.expire())

/** What connections are destroyed with. Nobody sees it; one for all, as making an error costs a stack trace. */
const endOfAttempt = new Error('the attempt has ended')

const closedByPeer = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
