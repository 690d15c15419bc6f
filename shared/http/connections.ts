import type { Socket } from 'node:net'
import { Client } from 'undici'
import { createConnector, type Connector, type ConnectorOptions } from './connector.ts'

export type ConnectionOptions = ConnectorOptions & {
  readonly maxConnectionsPerOrigin: number
  /** Origins with only idle connections are closed beyond this many, the least recently used first. */
  readonly maxOrigins: number
  readonly maxHeaderBytes: number
  /** How long an idle socket is kept where the server gives no hint, and at most where it does, ms. */
  readonly keepAliveTimeoutMs: number
  readonly keepAliveMaxTimeoutMs: number
  /** A socket older than this is not used again, so that a moved DNS name is followed, ms. */
  readonly socketMaxAgeMs: number
}

/** One socket to one origin, and the undici client that speaks HTTP on it. Carries one request at a time. */
export type Connection = {
  readonly origin: Origin
  readonly client: Client
  /** The socket being opened or open; null before the first. undici opens another one by itself when an idle one was closed. */
  socket: Socket | null
  /** Requests written to the present socket: above 0, it was used before. */
  requestsOnSocket: number
  /** performance.now() when the present socket was begun. */
  openedAt: number
  state: 'busy' | 'idle' | 'gone'
}

/** Called with a connection that is busy for the waiter from then on; never called from inside `wait` or `release`. */
export type Waiter = { onConnection: (connection: Connection) => void }

type Origin = {
  readonly url: string
  readonly connect: Connector
  /** The most recently used last: it is taken first, so that a pool that is too large shrinks by itself. */
  readonly idle: Connection[]
  readonly waiters: Set<Waiter>
  busy: number
}

export type Connections = ReturnType<typeof createConnections>

const ignore = (): void => {}

/**
 * The sockets of every origin (scheme, host and port; several endpoints may share one), bounded for each. Built on undici's
 * `Client`, which is one socket, rather than on its `Pool`: a Pool queues without bound, cannot let go of a request that waits
 * for a connection, and cannot promise a fresh socket where a used one turned out to be dead. An origin lives as long as a
 * connection or a waiter of it; idle sockets close after their keep-alive time, so origins need no sweeping.
 */
export function createConnections(options: ConnectionOptions) {
  // In order of their last use.
  const origins = new Map<string, Origin>()
  let sockets = 0
  let isClosed = false
  let onLastSocketClosed: (() => void) | null = null

  const touchOrigin = (url: string): Origin => {
    const known = origins.get(url)
    if (known !== undefined) {
      origins.delete(url)
      origins.set(url, known)
      return known
    }
    const { port, protocol } = new URL(url)
    const connect = createConnector(port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port), options)
    const origin: Origin = { url, connect, idle: [], waiters: new Set(), busy: 0 }
    origins.set(url, origin)
    if (origins.size > options.maxOrigins) closeLeastRecentlyUsed(origin)
    return origin
  }

  const closeLeastRecentlyUsed = (except: Origin): void => {
    for (const origin of origins.values()) {
      if (origin === except || origin.busy > 0 || origin.waiters.size > 0) continue
      for (const connection of origin.idle.splice(0)) retire(connection)
      origins.delete(origin.url)
      return
    }
  }

  const forgetIfEmpty = (origin: Origin): void => {
    const isEmpty = origin.busy === 0 && origin.idle.length === 0 && origin.waiters.size === 0
    if (isEmpty && origins.get(origin.url) === origin) origins.delete(origin.url)
  }

  const open = (origin: Origin): Connection => {
    const client = new Client(origin.url, {
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: options.maxHeaderBytes,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      keepAliveMaxTimeout: options.keepAliveMaxTimeoutMs,
      // Neither is a deadline (the one is reset by every 1xx, the other by every chunk) and both cost timers: ours covers all.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (connectOptions, callback) => {
        const socket = origin.connect(connectOptions, callback as (error: Error | null, socket: Socket | null) => void)
        connection.socket = socket
        connection.requestsOnSocket = 0
        connection.openedAt = performance.now()
        if (socket !== null) countSocket(socket)
        return socket
      },
    })
    const connection: Connection = { origin, client, socket: null, requestsOnSocket: 0, openedAt: 0, state: 'busy' }
    // A busy one keeps its client: a request not yet written when its idle socket closes goes out on the next socket.
    client.on('disconnect', () => {
      if (connection.state !== 'idle') return
      origin.idle.splice(origin.idle.indexOf(connection), 1)
      retire(connection)
      forgetIfEmpty(origin)
    })
    origin.busy += 1
    return connection
  }

  const countSocket = (socket: Socket): void => {
    sockets += 1
    socket.once('close', () => {
      sockets -= 1
      if (sockets === 0) onLastSocketClosed?.()
    })
  }

  const retire = (connection: Connection): void => {
    connection.state = 'gone'
    connection.client.close(ignore)
  }

  const takeFrom = (origin: Origin): Connection | null => {
    const connection = origin.idle.pop()
    if (connection === undefined) return origin.busy < options.maxConnectionsPerOrigin ? open(origin) : null
    connection.state = 'busy'
    origin.busy += 1
    return connection
  }

  const serveWaiters = (origin: Origin): void => {
    for (const waiter of origin.waiters) {
      const connection = takeFrom(origin)
      if (connection === null) return
      origin.waiters.delete(waiter)
      waiter.onConnection(connection)
    }
    forgetIfEmpty(origin)
  }

  const afterLeaving = (origin: Origin): void => {
    // Not at once: undici calls us from inside its parser, before it has finished with the connection.
    if (origin.waiters.size > 0) queueMicrotask(() => serveWaiters(origin))
    else forgetIfEmpty(origin)
  }

  const end = (connection: Connection, reason: Error): void => {
    connection.state = 'gone'
    connection.origin.busy -= 1
    connection.client.destroy(reason, ignore)
    // undici forgets a socket that is still connecting, and it would live on until the connect timeout.
    connection.socket?.destroy(reason)
  }

  return {
    /** A connection of this origin that is free, or a new one; null when there are as many as may be and all are busy. */
    take: (url: string): Connection | null => takeFrom(touchOrigin(url)),

    /** Puts a waiter at the end of the origin's line. Returns what takes it out again. */
    wait: (url: string, waiter: Waiter): (() => void) => {
      const origin = touchOrigin(url)
      origin.waiters.add(waiter)
      return () => {
        origin.waiters.delete(waiter)
        forgetIfEmpty(origin)
      }
    },

    /** Gives back a connection whose request has ended in order. */
    release: (connection: Connection): void => {
      const { origin } = connection
      origin.busy -= 1
      if (isClosed || performance.now() - connection.openedAt > options.socketMaxAgeMs) {
        retire(connection)
      } else {
        connection.state = 'idle'
        origin.idle.push(connection)
      }
      afterLeaving(origin)
    },

    /** Destroys a connection, connecting or connected, whatever its request does. */
    discard: (connection: Connection, reason: Error): void => {
      end(connection, reason)
      afterLeaving(connection.origin)
    },

    /** Destroys a connection and gives a fresh one in its place. */
    replace: (connection: Connection, reason: Error): Connection => {
      end(connection, reason)
      return open(connection.origin)
    },

    /** `sockets` counts those connecting too. */
    stats: (): { sockets: number; origins: number } => ({ sockets, origins: origins.size }),

    /** Closes what is idle; what is busy must have been discarded or be released. Resolves when every socket is closed. */
    close: (): Promise<void> => {
      isClosed = true
      for (const origin of origins.values()) {
        for (const connection of origin.idle.splice(0)) retire(connection)
        forgetIfEmpty(origin)
      }
      return new Promise((resolve) => {
        onLastSocketClosed = resolve
        if (sockets === 0) resolve()
      })
    },
  }
}
