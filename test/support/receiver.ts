import { createServer, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { until } from './until.ts'

export type ReceivedRequest = {
  /** From 1, in the order their headers came. */
  readonly number: number
  readonly method: string
  readonly path: string
  /** By lower-case name, as Node joins them. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** As they were on the wire: case, order and repeats. */
  readonly rawHeaders: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** Epoch ms, when the headers were there. */
  readonly receivedAt: number
  /** Epoch ms, when the body was whole. */
  readonly completedAt: number
  /** From 1; requests on one connection have the same. */
  readonly connection: number
}

export type Answer = {
  /** Default 200. */
  readonly status?: number
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
}

/**
 * What the receiver does with a request: an answer; `reset` cuts the connection with an RST, `hang` never answers, `raw` writes these
 * bytes as they are, and then ends the connection.
 */
export type Reaction = Answer | 'reset' | 'hang' | { readonly raw: string | Buffer }

/** May wait before it says what to do: a slow receiver. */
export type Script = (request: ReceivedRequest) => Reaction | Promise<Reaction>

export type Receiver = {
  /** `http://127.0.0.1:port`, with no slash at the end. */
  readonly url: string
  readonly port: number
  /** All so far, in the order in which they were complete. */
  readonly requests: readonly ReceivedRequest[]
  /** Of the most requests that were being answered at the same time. */
  readonly mostInFlight: () => number
  /** What it does from now on. Default: 200 to everything. */
  script(script: Script): void
  /** Resolves with the requests once there are so many. */
  waitForRequests(count: number, deadlineMs?: number): Promise<readonly ReceivedRequest[]>
  /** Cuts all connections and listens no more. May be called more than once. */
  close(): Promise<void>
}

/** An HTTP server on a port of its own that does what the test says; closed when the test ends. `port` brings one back where it was. */
export async function startReceiver(t: Pick<TestContext, 'after'>, initial: Script = () => ({}), port = 0): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const connections = new Map<Socket, number>()
  let script = initial
  let received = 0
  let opened = 0
  let inFlight = 0
  let mostInFlight = 0

  // Node would end what takes long with a 408 of its own.
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 }, (incoming, response) => {
    const number = ++received
    const receivedAt = Date.now()
    mostInFlight = Math.max(mostInFlight, ++inFlight)
    response.once('close', () => inFlight--)
    const react = async (): Promise<void> => {
      const body = await readBody(incoming)
      // Cut off in the middle: never a request.
      if (!body) return
      const request: ReceivedRequest = {
        number, receivedAt, body,
        method: incoming.method ?? '', path: incoming.url ?? '',
        headers: incoming.headers as Record<string, string | undefined>, rawHeaders: pairs(incoming.rawHeaders),
        completedAt: Date.now(), connection: connections.get(incoming.socket) ?? 0,
      }
      requests.push(request)
      const reaction = await script(request)
      if (reaction === 'hang') return
      if (reaction === 'reset') incoming.socket.resetAndDestroy()
      else if ('raw' in reaction) incoming.socket.end(reaction.raw)
      else response.writeHead(reaction.status ?? 200, reaction.headers ?? {}).end(reaction.body ?? '')
    }
    react().catch((error: unknown) => {
      // A script that throws is a mistake in the test: seen as a 599 by who asked, and on stderr by who reads.
      process.stderr.write(`the receiver's script failed: ${String(error)}\n`)
      response.writeHead(599).end()
    })
  })
  server.on('connection', (socket) => {
    connections.set(socket, ++opened)
    socket.on('error', () => undefined)
    socket.once('close', () => connections.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const listening = server.address() as AddressInfo

  let closing: Promise<void> | null = null
  const close = (): Promise<void> => (closing ??= new Promise((resolve) => {
    server.close(() => resolve())
    for (const socket of connections.keys()) socket.destroy()
  }))
  t.after(close)

  return {
    url: `http://127.0.0.1:${listening.port}`,
    port: listening.port,
    requests,
    mostInFlight: () => mostInFlight,
    script: (next) => {
      script = next
    },
    waitForRequests: async (count, deadlineMs = 10_000) => {
      await until(() => requests.length >= count, { deadlineMs, message: () => `${count} requests (${requests.length} came)` })
      return requests
    },
    close,
  }
}

/** null when the sender went away before it was whole. */
async function readBody(incoming: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return incoming.complete ? Buffer.concat(chunks) : null
}

function pairs(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index]!, flat[2 * index + 1]!])
}
