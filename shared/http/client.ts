import { createSecureContext, getCACertificates } from 'node:tls'
import type { ErrorCode } from '../domain/error-codes.ts'
import { shareLookups, type CheckAddress, type Lookup } from './connector.ts'
import { createConnections } from './connections.ts'
import { Post, type Attempted, type PostRequest } from './post.ts'

export type HttpClientOptions = {
  /** Sockets to one scheme, host and port; further requests wait in line, under their deadline. Default 256. */
  readonly maxConnectionsPerOrigin?: number
  /** DNS, TCP and TLS of one connection. Default 5,000. */
  readonly connectTimeoutMs?: number
  /** Size of a response's headers in all. Default 16 KiB. */
  readonly maxHeaderBytes?: number
  /** How long an idle socket is kept where the server names no time. Default 4,000. */
  readonly keepAliveTimeoutMs?: number
  /** And at most, whatever the server names. Default 30,000. */
  readonly keepAliveMaxTimeoutMs?: number
  /** Beyond this many, idle origins are closed. Default 1,000. */
  readonly maxOrigins?: number
  /** A socket is not used again after this. Default 60,000. */
  readonly socketMaxAgeMs?: number
  /** PEM of authorities trusted besides those Node carries. */
  readonly ca?: string | null
  readonly lookup?: Lookup
  /** The address guard. Default: every address may be connected to. */
  readonly checkAddress?: CheckAddress | null
}

export type HttpClient = ReturnType<typeof createHttpClient>

/**
 * Sends one POST at a time to any endpoint, over kept-alive HTTP/1.1 connections. Follows no redirect, decompresses nothing,
 * never retries but for a used socket that turned out dead (see Post), and reports every failure as an outcome, never by throwing.
 */
export function createHttpClient(options: HttpClientOptions = {}) {
  const { ca = null } = options
  const connections = createConnections({
    maxConnectionsPerOrigin: options.maxConnectionsPerOrigin ?? 256,
    maxOrigins: options.maxOrigins ?? 1000,
    maxHeaderBytes: options.maxHeaderBytes ?? 16 * 1024,
    keepAliveTimeoutMs: options.keepAliveTimeoutMs ?? 4000,
    keepAliveMaxTimeoutMs: options.keepAliveMaxTimeoutMs ?? 30_000,
    socketMaxAgeMs: options.socketMaxAgeMs ?? 60_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    lookup: shareLookups(options.lookup),
    checkAddress: options.checkAddress ?? null,
    // Made once: left to each connection, it would parse all authorities every time.
    secureContext: ca === null ? undefined : createSecureContext({ ca: [...getCACertificates('default'), ca] }),
  })
  const running = new Set<Post>()
  // One listener for each signal, however many attempts share it.
  const runningBySignal = new WeakMap<AbortSignal, Set<Post>>()
  let isClosing = false
  let onLastSettled: (() => void) | null = null
  let closing: Promise<void> | null = null

  const watch = (signal: AbortSignal): Set<Post> => {
    const known = runningBySignal.get(signal)
    if (known !== undefined) return known
    const posts = new Set<Post>()
    runningBySignal.set(signal, posts)
    signal.addEventListener('abort', () => endAll(posts), { once: true })
    return posts
  }

  const close = (): Promise<void> => {
    isClosing = true
    closing ??= new Promise<void>((resolve) => {
      onLastSettled = resolve
      if (running.size === 0) resolve()
    }).then(() => connections.close())
    return closing
  }

  return {
    /** One attempt. Never rejects. Resolves within the deadline, when the body has ended or enough of it was read. */
    post: (request: PostRequest): Promise<Attempted> => {
      if (isClosing || request.signal?.aborted) return Promise.resolve(notBegun('shutting_down', endedByUs))
      const url = URL.parse(request.url)
      if (url === null || !isRequestable(url)) {
        return Promise.resolve(notBegun('invalid_url', 'the URL must be http or https, without credentials: correct the subscription'))
      }
      const posts = request.signal === undefined ? null : watch(request.signal)
      return new Promise((resolve) => {
        const post = new Post(request, url, connections, (post, attempted) => {
          running.delete(post)
          posts?.delete(post)
          resolve(attempted)
          if (running.size === 0) onLastSettled?.()
        })
        running.add(post)
        posts?.add(post)
        post.start()
      })
    },

    /** Sockets open or opening, and origins that have any or are waited for. */
    stats: (): { sockets: number; origins: number } => connections.stats(),

    /** Takes nothing new, lets what runs finish, closes every socket. */
    close,

    /** The same, but ends what runs at once, as `shutting_down`. */
    destroy: (): Promise<void> => {
      const closed = close()
      endAll(running)
      return closed
    },
  }
}

const endAll = (posts: Set<Post>): void => {
  for (const post of posts) post.end('shutting_down', endedByUs)
}

const endedByUs = 'the attempt was ended by this process'

// Credentials in a URL would be dropped in silence, and the request refused by the endpoint.
const isRequestable = ({ protocol, username, password }: URL): boolean =>
  (protocol === 'http:' || protocol === 'https:') && username === '' && password === ''

const notBegun = (error: ErrorCode, detail: string): Attempted => ({
  outcome: { kind: 'failure', error, phase: 'before_send', detail }, durationMs: 0, reusedSocket: false, redone: false,
})
