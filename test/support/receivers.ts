import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { until } from './until.ts'

/** One request as it came over the wire. */
export type ReceivedRequest = {
  readonly method: string
  readonly target: string
  /** Names in lower case; the last one wins. */
  readonly headers: Readonly<Record<string, string>>
  /** Request line and headers as sent, latin1. */
  readonly head: string
  readonly body: Buffer
  /** Counted from 1 over the whole receiver, and over its socket. */
  readonly number: number
  readonly numberOnSocket: number
}

export type ReceiverBehaviour = {
  readonly onConnection?: (socket: Socket) => void
  /** Called when a request is complete; writes what it wants on the raw socket. Default: 200 with the body `ok`. */
  readonly onRequest?: (socket: Socket, request: ReceivedRequest) => void
  /** Called at a request's first bytes instead, for those who do not read it to the end; nothing is parsed then. */
  readonly onFirstBytes?: (socket: Socket) => void
  readonly tls?: { readonly key: string; readonly cert: string }
}

export type Receiver = {
  readonly port: number
  readonly url: string
  readonly requests: readonly ReceivedRequest[]
  /** Connections ever accepted, and those still open. */
  readonly accepted: () => number
  readonly openConnections: () => number
  readonly close: () => Promise<void>
}

/** A whole response with the right length. Header lines as written: `Retry-After: 5`. */
export function response(
  status: number, { headers = [], body = 'ok' }: { headers?: readonly string[]; body?: string | Buffer } = {},
): Buffer {
  const lines = [`HTTP/1.1 ${status} Whatever`, ...headers, `Content-Length: ${Buffer.byteLength(body)}`, '', '']
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), Buffer.from(body)])
}

/** Answers every request with these bytes. */
export function answering(bytes: string | Buffer): ReceiverBehaviour {
  return { onRequest: (socket) => void socket.write(bytes) }
}

/**
 * A receiver on a raw socket of loopback, port 0: unlike node:http it can misbehave at every byte. Errors of its sockets are
 * expected (clients cut them off) and ignored.
 */
export async function startReceiver({ onConnection, onRequest, onFirstBytes, tls }: ReceiverBehaviour = {}): Promise<Receiver> {
  const sockets = new Set<Socket>()
  const requests: ReceivedRequest[] = []
  let accepted = 0
  const accept = (socket: Socket): void => {
    socket.on('error', () => {})
    onConnection?.(socket)
    if (onFirstBytes !== undefined) {
      socket.once('data', () => onFirstBytes(socket))
    } else {
      readRequests(socket, (request) => {
        const received = { ...request, number: requests.length + 1 }
        requests.push(received)
        if (onRequest === undefined) socket.write(response(200))
        else onRequest(socket, received)
      })
    }
  }
  const server: Server = tls === undefined ? createServer({ noDelay: true }, accept) : createTlsServer(tls, accept)
  // Under TLS too this is the TCP connection, so that a handshake that hangs or fails is counted.
  server.on('connection', (socket: Socket) => {
    accepted += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `${tls === undefined ? 'http' : 'https'}://${tls === undefined ? '127.0.0.1' : 'localhost'}:${port}/hook`,
    requests,
    accepted: () => accepted,
    openConnections: () => sockets.size,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Writes a piece again and again until the socket closes, waiting for room; `everyMs` 0: as fast as it is taken. */
export function keepWriting(socket: Socket, piece: string | Buffer, everyMs: number): void {
  if (everyMs > 0) {
    const timer = setInterval(() => void socket.write(piece), everyMs)
    socket.once('close', () => clearInterval(timer))
    return
  }
  const writeOn = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', writeOn)
  writeOn()
}

/** A port of loopback that nothing listens on: it was free a moment ago. */
export async function closedPort(): Promise<number> {
  const receiver = await startReceiver()
  await receiver.close()
  return receiver.port
}

/** Waits until no connection is open any more. */
export async function untilNoConnections(receiver: Receiver): Promise<void> {
  await until(() => receiver.openConnections() === 0, { message: `the receiver on port ${receiver.port} to have no open connection` })
}

function readRequests(socket: Socket, onRequest: (request: Omit<ReceivedRequest, 'number'>) => void): void {
  let pending: Buffer[] = []
  let pendingBytes = 0
  let neededBytes = 0
  let numberOnSocket = 0
  socket.on('data', (chunk: Buffer) => {
    pending.push(chunk)
    pendingBytes += chunk.length
    // Not joined at every chunk: 50 MiB of request would be copied a thousand times.
    if (pendingBytes < neededBytes) return
    let bytes = Buffer.concat(pending)
    for (;;) {
      const headEnd = bytes.indexOf('\r\n\r\n')
      if (headEnd === -1) break
      const head = bytes.toString('latin1', 0, headEnd)
      const [requestLine = '', ...lines] = head.split('\r\n')
      const headers = Object.fromEntries(lines.map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }))
      const bodyStart = headEnd + 4
      neededBytes = bodyStart + Number(headers['content-length'] ?? 0)
      if (bytes.length < neededBytes) break
      const [method = '', target = ''] = requestLine.split(' ')
      numberOnSocket += 1
      onRequest({ method, target, headers, head, body: bytes.subarray(bodyStart, neededBytes), numberOnSocket })
      bytes = bytes.subarray(neededBytes)
      neededBytes = 0
    }
    pending = [bytes]
    pendingBytes = bytes.length
  })
}
