import type { Socket } from 'node:net'
import { Client } from 'undici'
import type { Connector } from './connector.ts'
import { skipUnaskedContinue, type AwaitingStatus } from './unasked-continue.ts'

export type ConnectionOptions = {
  readonly maxHeaderBytes: number
  /** How long an idle socket is kept where the server gives no hint, and at most where it does, ms. */
  readonly keepAliveTimeoutMs: number
  readonly keepAliveMaxTimeoutMs: number
}

/** One socket to one origin, and the undici client that speaks HTTP on it. Carries one request at a time. */
export type Connection = AwaitingStatus & {
  readonly client: Client
  /** The socket being opened or open; null before the first. undici opens another one by itself when an idle one was closed. */
  socket: Socket | null
  /** Requests written to the present socket: above 0, it was used before. */
  requestsOnSocket: number
  /** performance.now() when the present socket was begun. */
  openedAt: number
}

/**
 * Makes a connection; its socket is opened with the first request. `onSocket` hears of every socket as soon as it is being
 * opened, `onDisconnect` when undici has noticed that it is closed.
 */
export function openConnection(
  originUrl: string,
  connect: Connector,
  options: ConnectionOptions,
  { onSocket, onDisconnect }: { onSocket: (socket: Socket) => void; onDisconnect: () => void },
): Connection {
  const client = new Client(originUrl, {
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: options.maxHeaderBytes,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    keepAliveMaxTimeout: options.keepAliveMaxTimeoutMs,
    // Neither is a deadline (the one is reset by every 1xx, the other by every chunk) and both cost timers: ours covers all.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (connectOptions, callback) => {
      const socket = connect(connectOptions, callback as (error: Error | null, socket: Socket | null) => void)
      connection.socket = socket
      connection.requestsOnSocket = 0
      connection.openedAt = performance.now()
      if (socket === null) return
      skipUnaskedContinue(socket, connection)
      onSocket(socket)
    },
  })
  client.on('disconnect', onDisconnect)
  const connection: Connection = { client, socket: null, requestsOnSocket: 0, isAwaitingStatus: false, openedAt: 0 }
  return connection
}

/** Lets undici finish with it and closes the socket. */
export function closeConnection({ client }: Connection): void {
  client.close(ignore)
}

/** Ends it now, connecting or connected. undici alone would leave a socket that is still connecting to its connect timeout. */
export function destroyConnection({ client, socket }: Connection, reason: Error): void {
  client.destroy(reason, ignore)
  socket?.destroy(reason)
}

const ignore = (): void => {}
