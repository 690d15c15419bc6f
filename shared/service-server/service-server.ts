import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

export type ServiceServerOptions = {
  /** 0: any free port. */
  readonly port: number
  readonly host: string
  readonly registry: Registry
  /** What is still missing before this process does its work, each in a few words; empty when nothing is. */
  readonly readiness: () => readonly string[]
  /** Why only a restart can help, or null. A broker that is away is no reason. */
  readonly liveness: () => string | null
  /** Takes every other path; answers 404 by itself where this is left out. */
  readonly handle?: RequestHandler
}

export type ServiceServer = {
  readonly port: number
  /** Answers what is being asked, takes nothing new; connections that will not end are cut after a second. */
  close(): Promise<void>
}

const closeDeadlineMs = 1_000

/** Opens the one port of a service: `/metrics`, `/readyz`, `/livez`. Rejects, saying what to do, when the port cannot be opened. */
export const createServiceServer = async (options: ServiceServerOptions): Promise<ServiceServer> => {
  const { port, host, registry, readiness, liveness, handle } = options

  const answerReady = (response: ServerResponse): void => {
    const waitingFor = askSafely(readiness, (reason) => [reason])
    sendJson(response, waitingFor.length === 0 ? 200 : 503, { ready: waitingFor.length === 0, waitingFor })
  }
  const answerAlive = (response: ServerResponse): void => {
    // A check that fails to run proves nothing about a restart, so it does not ask for one.
    const reason = askSafely(liveness, () => null)
    sendJson(response, reason === null ? 200 : 503, { alive: reason === null, reason })
  }
  const answerMetrics = async (response: ServerResponse): Promise<void> => {
    try {
      const text = await registry.metrics()
      response.writeHead(200, { 'content-type': registry.contentType }).end(text)
    } catch (error) {
      sendError(response, 500, 'internal', `metrics could not be gathered: ${(error as Error).message}`, 'this is a bug of posthouse: please report it')
    }
  }

  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0]
    const isOurs = path === '/metrics' || path === '/readyz' || path === '/livez'
    if (!isOurs && handle) return handle(request, response)
    if (!isOurs) return sendError(response, 404, 'not_found', 'there is nothing at this path', 'ask for /metrics, /readyz or /livez')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return sendError(response, 405, 'method_not_allowed', `${path} cannot be asked with ${request.method}`, 'use GET')
    }
    if (path === '/readyz') return answerReady(response)
    if (path === '/livez') return answerAlive(response)
    void answerMetrics(response)
  })
  // Whoever sends a request slowly must not hold sockets: headers 5 s, all of it 30 s.
  server.headersTimeout = 5_000
  server.requestTimeout = 30_000

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explainListenError(error, host, port)))
    server.listen(port, host, resolve)
  })
  // From now on a connection that could not be accepted, for lack of file descriptors: whoever asked asks again.
  server.on('error', () => undefined)

  let closing: Promise<void> | null = null
  return {
    port: (server.address() as AddressInfo).port,
    close: () => (closing ??= new Promise((resolve) => {
      const cut = setTimeout(() => server.closeAllConnections(), closeDeadlineMs)
      server.close(() => {
        clearTimeout(cut)
        resolve()
      })
      server.closeIdleConnections()
    })),
  }
}

const askSafely = <Answer>(ask: () => Answer, onError: (reason: string) => Answer): Answer => {
  try {
    return ask()
  } catch (error) {
    return onError(`the check itself failed: ${(error as Error).message}`)
  }
}

const explainListenError = (error: NodeJS.ErrnoException, host: string, port: number): Error => {
  const hint = error.code === 'EADDRINUSE' ? 'another process has it: set POSTHOUSE_HTTP_PORT to another port, or to 0 for any free one'
    : error.code === 'EACCES' ? 'this user may not open it: set POSTHOUSE_HTTP_PORT to 1024 or above'
    : error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' ? 'this machine does not have that address: set POSTHOUSE_HTTP_HOST to one it has'
    : 'set POSTHOUSE_HTTP_HOST and POSTHOUSE_HTTP_PORT to an address that can be opened'
  return new Error(`port ${port} of ${host} could not be opened (${error.code}): ${hint}`, { cause: error })
}

const sendJson = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(`${JSON.stringify(body)}\n`)
}

const sendError = (response: ServerResponse, status: number, code: string, message: string, hint: string): void =>
  sendJson(response, status, { error: { code, message, hint } })
