import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { exitCodes } from '../../shared/lifecycle/exit-codes.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, collect, timerMs, wholeNumber, type Outcome } from '../command.ts'
import type { Context } from '../context.ts'
import { checkSignature, type SignatureVerdict } from '../signature-check.ts'
import { printable } from '../table-text.ts'

type ListenOptions = {
  readonly port: number
  readonly host: string
  readonly secret?: readonly string[]
  readonly status: readonly number[]
  readonly delay: number
  readonly count?: number
  readonly body?: boolean
}

/** One request as it is printed. */
type Received = {
  readonly receivedAt: string
  readonly method: string
  readonly path: string
  readonly eventType: string | null
  readonly deliveryId: string | null
  readonly attempt: number | null
  readonly replay: number
  readonly signature: SignatureVerdict
  readonly bytes: number
  readonly status: number
  readonly body?: string
}

/** Twice the largest body posthouse sends. */
const maxBodyBytes = 1024 * 1024
/** Answers that Node sends no body with, and would complain about. */
const statuses = (text: string): readonly number[] => text.split(',').map((part) => {
  const status = Number(part.trim())
  if (!/^\d{3}$/.test(part.trim()) || status < 200 || status > 599) {
    throw new InvalidArgumentError('Give a status from 200 to 599, or several separated by commas.')
  }
  return status
})

export function addListenCommand(program: Command): void {
  addCommand(program, 'listen', 'receive webhooks and print a line for each; for trying things, needs no Kafka')
    .option('--port <port>', 'port to listen on; 0 takes any free one', wholeNumber(0, 65_535), 4000)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .addOption(new Option('--secret <secret>', 'check signatures with it; may be repeated').env('WEBHOOK_SECRET').argParser(collect))
    .option('--status <status>', 'answer with it; of several, separated by commas, each in turn, and the last stays', statuses, [200])
    .option('--delay <duration>', 'wait so long before each answer', timerMs, 0)
    .option('--count <n>', 'end after so many requests, with exit code 6 if a signature was not right', wholeNumber(1, 1_000_000_000))
    .option('--body', 'print the bodies too')
    .action(act(listen))
}

async function listen(context: Context, options: ListenOptions): Promise<Outcome> {
  const { output } = context
  const { count = Infinity, secret: secrets = [] } = options
  const done = Promise.withResolvers<void>()
  const delays = new Set<NodeJS.Timeout>()
  let accepted = 0
  let answered = 0
  let unverified = 0

  const answer = (response: ServerResponse, received: Received): void => {
    response.writeHead(received.status, { 'content-type': 'text/plain' }).end()
    response.once('close', () => {
      answered++
      if (received.signature !== 'verified' && received.signature !== 'unchecked') unverified++
      if (answered >= count) done.resolve()
    })
    output.row(received, describe(received))
  }
  const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // More than were asked for may arrive before the end: they are told to come again.
    if (accepted >= count) return void response.writeHead(503).end()
    const status = options.status[Math.min(accepted++, options.status.length - 1)] ?? 200
    const body = await readBody(request)
    if (body === null) {
      accepted--
      return void response.destroy()
    }
    const received = receivedFrom(request, body, status, checkSignature(request.headers, body, secrets, Date.now()))
    const timer = setTimeout(() => {
      delays.delete(timer)
      answer(response, options.body ? { ...received, body: body.toString() } : received)
    }, options.delay)
    delays.add(timer)
  }

  const server = createServer((request, response) => void onRequest(request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new CliError(
      'failed', `port ${options.port} of ${options.host} could not be opened (${error.code})`,
      'choose another with --port, or 0 for any free one',
    )))
    server.listen(options.port, options.host, resolve)
  })
  try {
    const { port } = server.address() as AddressInfo
    output.warn(`listening on http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`)
    await context.follow(done.promise)
  } finally {
    for (const timer of delays) clearTimeout(timer)
    server.close()
    server.closeAllConnections()
  }
  if (count !== Infinity && unverified > 0) {
    throw new CliError(
      'partial', `${unverified} of ${answered} requests had no right signature`,
      'check that --secret is the subscription\'s present secret',
    )
  }
  return exitCodes.ok
}

function receivedFrom(request: IncomingMessage, body: Buffer, status: number, signature: SignatureVerdict): Received {
  const header = (name: string): string | null => {
    const value = request.headers[name]
    return typeof value === 'string' ? value : null
  }
  const attempt = header('x-webhook-attempt')
  return {
    receivedAt: new Date().toISOString(), method: request.method ?? '', path: request.url ?? '',
    eventType: header('x-webhook-event'), deliveryId: header('x-webhook-delivery') ?? header('webhook-id'),
    attempt: attempt === null ? null : Number(attempt), replay: Number(header('x-webhook-replay') ?? 0),
    signature, bytes: body.length, status,
  }
}

function describe({ receivedAt, eventType, deliveryId, attempt, replay, signature, status, method, path, body }: Received): string {
  const words = {
    verified: 'signature verified', wrong: 'SIGNATURE WRONG', stale: 'SIGNATURE TOO OLD', missing: 'NOT SIGNED',
    unchecked: 'signature not checked',
  }
  const what = eventType === null ? `${method} ${path}` : eventType
  const number = `attempt ${attempt ?? '-'}${replay > 0 ? ` of replay ${replay}` : ''}`
  const parts = [receivedAt.slice(11, 23), what, deliveryId ?? '-', number, words[signature], `answered ${status}`]
  return printable(parts.join('  ')) + (body === undefined ? '' : `\n${body.split('\n').map(printable).join('\n')}`)
}

/** null when it is too large or the sender went away. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > maxBodyBytes) return null
      chunks.push(chunk)
    }
  } catch {
    return null
  }
  return Buffer.concat(chunks)
}
