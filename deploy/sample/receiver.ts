/**
 * The sample receiver, a process of its own so that its load is nobody else's: node receiver.ts CONFIGURATION-FILE
 * It answers as its endpoints do, verifies signatures with Stripe's own package, and logs every request.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { Stripe } from 'stripe'
import { behaviours, type EndpointName } from './endpoints.ts'
import { toLine, type Arrival } from './received-line.ts'

/** What the file holds. It has secrets, so only its owner may read it. */
export type ReceiverConfiguration = {
  readonly port: number
  readonly logFile: string
  /** The signing secret of each endpoint; its path is `/` and its name. */
  readonly secrets: Partial<Readonly<Record<EndpointName, string>>>
  /** Keep one delivery out of the log, to see that the account notices. */
  readonly hidesOne: boolean
}

const { port, logFile, secrets, hidesOne } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as ReceiverConfiguration
const log = createWriteStream(logFile, { flags: 'a' })
/** Requests so far, by delivery. */
const counts = new Map<string, number>()
let hidden: string | null = null

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const receivedAt = Date.now()
  const endpoint = request.url?.slice(1) as EndpointName
  const secret = secrets[endpoint]
  if (secret === undefined) return void response.writeHead(404).end()
  const body = await readBody(request)
  const deliveryId = String(request.headers['x-webhook-delivery'])
  const n = (counts.get(deliveryId) ?? 0) + 1
  counts.set(deliveryId, n)

  const event = verify(body, String(request.headers['x-webhook-signature']), secret)
  const { status, delayMs } = behaviours[endpoint]
  // What is not signed rightly is not worth a second try, and is not acted on.
  const answered = event === null ? 401 : status(n)
  if (delayMs > 0) await delay(delayMs)
  response.writeHead(answered, { 'content-type': 'text/plain' }).end()
  if (!response.closed) await once(response, 'close')
  record({
    endpoint, deliveryId, eventId: event?.id ?? null, attempt: Number(request.headers['x-webhook-attempt']), receivedAt, answeredAt: Date.now(),
    isVerified: event !== null, status: response.writableFinished ? answered : null,
    sha256: createHash('sha256').update(body).digest('hex'),
  })
}

function verify(body: Buffer, signature: string, secret: string): { readonly id: string } | null {
  try {
    return Stripe.webhooks.constructEvent(body, signature, secret)
  } catch {
    // Said in the log by isVerified.
    return null
  }
}

function record(arrival: Arrival): void {
  if (hidesOne) hidden ??= arrival.deliveryId
  if (arrival.deliveryId !== hidden) log.write(toLine(arrival))
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    // Cut off in the middle of the request: it never was one.
    process.stderr.write(`a request could not be read: ${String(error)}\n`)
    response.destroy()
  })
})
// Longer than posthouse keeps idle connections, so that it never sends on one that is being closed here.
server.keepAliveTimeout = 65_000
server.listen(port, '127.0.0.1', () => process.stdout.write(`listening on http://127.0.0.1:${port}\n`))

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    server.close(() => log.end())
    server.closeIdleConnections()
    setTimeout(() => server.closeAllConnections(), 1_000).unref()
  })
}
