import type { Socket } from 'node:net'
import { closeConnection, destroyConnection, openConnection, type Connection, type ConnectionOptions } from './connection.ts'
import { createConnector, type Connector, type ConnectorOptions } from './connector.ts'

export type ConnectionsOptions = ConnectorOptions & ConnectionOptions & {
  readonly maxConnectionsPerOrigin: number
  /** Beyond this many, origins with only idle connections are closed, the least recently used first. */
  readonly maxOrigins: number
  /** A socket older than this is not used again, so that a moved DNS name is followed, ms. */
  readonly socketMaxAgeMs: number
}

/** A connection as its origin holds it. Whoever takes one gives it back by `release`, `discard` or `replace`, once. */
export type PooledConnection = { readonly origin: Origin; readonly connection: Connection }

/** Gets a connection that is its own from then on; never called from inside `wait` or `release`. */
export type Waiter = { onConnection: (pooled: PooledConnection) => void }

type Origin = {
  readonly url: string
  readonly connect: Connector
  /** The most recently used last: it is taken first, so that a pool that is too large shrinks by itself. */
  readonly idle: PooledConnection[]
  readonly waiters: Set<Waiter>
  busy: number
  /** Number of the latest use, counted over all origins. */
  lastUse: number
}

export type Connections = ReturnType<typeof createConnections>

/**
 * The sockets of every origin (scheme, host and port; several endpoints may share one), bounded for each. Built on undici's
 * `Client`, which is one socket, rather than on its `Pool`: a Pool queues without bound, cannot let go of a request that waits
 * for a connection, and cannot promise a fresh socket where a used one turned out to be dead. An origin lives as long as a
 * connection or a waiter of it; idle sockets close after their keep-alive time, so origins need no sweeping.
 */
export function createConnections(options: ConnectionsOptions) {
  const origins = new Map<string, Origin>()
  let uses = 0
  let sockets = 0
  let onLastSocketClosed: (() => void) | null = null

  const touchOrigin = (url: string): Origin => {
    uses += 1
    const known = origins.get(url)
    if (known !== undefined) {
      known.lastUse = uses
      return known
    }
    const { port, protocol } = new URL(url)
    const connect = createConnector(port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port), options)
    const origin: Origin = { url, connect, idle: [], waiters: new Set(), busy: 0, lastUse: uses }
    origins.set(url, origin)
    if (origins.size > options.maxOrigins) closeLeastRecentlyUsed(origin)
    return origin
  }

  // Looking through all of them costs less than keeping them in order at every request: it happens once for each connection made.
  const closeLeastRecentlyUsed = (except: Origin): void => {
    let oldest: Origin | null = null
    for (const origin of origins.values()) {
      if (origin === except || origin.busy > 0 || origin.waiters.size > 0) continue
      if (oldest === null || origin.lastUse < oldest.lastUse) oldest = origin
    }
    if (oldest !== null) closeIdle(oldest)
  }

  const closeIdle = (origin: Origin): void => {
    for (const { connection } of origin.idle.splice(0)) closeConnection(connection)
    forgetIfEmpty(origin)
  }

  const forgetIfEmpty = (origin: Origin): void => {
    const isEmpty = origin.busy === 0 && origin.idle.length === 0 && origin.waiters.size === 0
    if (isEmpty && origins.get(origin.url) === origin) origins.delete(origin.url)
  }

  const open = (origin: Origin): PooledConnection => {
    // A busy one stays: a request not yet written when its idle socket closes goes out on the next one.
    const onDisconnect = (): void => {
      const place = origin.idle.indexOf(pooled)
      if (place === -1) return
      origin.idle.splice(place, 1)
      closeConnection(pooled.connection)
      forgetIfEmpty(origin)
    }
    const pooled = { origin, connection: openConnection(origin.url, origin.connect, options, { onSocket: countSocket, onDisconnect }) }
    origin.busy += 1
    return pooled
  }

  const countSocket = (socket: Socket): void => {
    sockets += 1
    socket.once('close', () => {
      sockets -= 1
      if (sockets === 0) onLastSocketClosed?.()
    })
  }

  const takeFrom = (origin: Origin): PooledConnection | null => {
    const pooled = origin.idle.pop()
    if (pooled === undefined) return origin.busy < options.maxConnectionsPerOrigin ? open(origin) : null
    origin.busy += 1
    return pooled
  }

  const serveWaiters = (origin: Origin): void => {
    for (const waiter of origin.waiters) {
      const pooled = takeFrom(origin)
      if (pooled === null) return
      origin.waiters.delete(waiter)
      waiter.onConnection(pooled)
    }
    forgetIfEmpty(origin)
  }

  const afterLeaving = (origin: Origin): void => {
    // Not at once: undici calls us from inside its parser, before it has finished with the connection.
    if (origin.waiters.size > 0) queueMicrotask(() => serveWaiters(origin))
    else forgetIfEmpty(origin)
  }

  return {
    /** A connection of this origin that is free, or a new one; null when there are as many as may be and all are busy. */
    take: (url: string): PooledConnection | null => takeFrom(touchOrigin(url)),

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
    release: (pooled: PooledConnection): void => {
      const { origin, connection } = pooled
      origin.busy -= 1
      if (performance.now() - connection.openedAt > options.socketMaxAgeMs) closeConnection(connection)
      else origin.idle.push(pooled)
      afterLeaving(origin)
    },

    /** Destroys a connection, whatever its request does. */
    discard: ({ origin, connection }: PooledConnection, reason: Error): void => {
      origin.busy -= 1
      destroyConnection(connection, reason)
      afterLeaving(origin)
    },

    /** Destroys a connection and gives a fresh one in its place. */
    replace: ({ origin, connection }: PooledConnection, reason: Error): PooledConnection => {
      origin.busy -= 1
      destroyConnection(connection, reason)
      return open(origin)
    },

    /** `sockets` counts those connecting too. */
    stats: (): { sockets: number; origins: number } => ({ sockets, origins: origins.size }),

    /** Closes what is idle; what is busy must be released or discarded. Resolves when every socket is closed. */
    close: (): Promise<void> => {
      for (const origin of origins.values()) closeIdle(origin)
      return new Promise((resolve) => {
        onLastSocketClosed = resolve
        if (sockets === 0) resolve()
      })
    },
  }
}
