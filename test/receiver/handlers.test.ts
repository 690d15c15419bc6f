import assert from 'node:assert/strict'
import { once as onceEvent } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { dedupe } from '../../receiver/dedupe.ts'
import { fetchHandler } from '../../receiver/fetch-handler.ts'
import { memoryStore } from '../../receiver/memory-store.ts'
import { nodeHandler, type NodeHandle } from '../../receiver/node-handler.ts'
import type { HandlerOptions } from '../../receiver/receive.ts'
import type { Webhook } from '../../receiver/webhook.ts'
import { until } from '../support/until.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const { webhooks } = new Stripe('sk_test_unused')

type Send = (request: RequestInit & { duplex?: 'half' }) => Promise<Response>
type Adapter = { readonly name: string; start(t: TestContext, options: HandlerOptions, handle: NodeHandle): Promise<Send> }

async function serve(
  t: TestContext, listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<{ url: string; port: number }> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1')
  await onceEvent(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, port }
}

const adapters: readonly Adapter[] = [
  {
    name: 'node:http',
    start: async (t, options, handle) => {
      const handler = nodeHandler(options, handle)
      const { url } = await serve(t, handler)
      return (init) => fetch(url, init)
    },
  },
  {
    name: 'fetch',
    start: async (_, options, handle) => {
      const handler = fetchHandler(options, handle)
      return (init) => handler(new Request('http://receiver.example/', init))
    },
  },
]

const signed = (body: string | Buffer<ArrayBuffer>, id: string | null = 'del_1', by = secret): { method: 'POST'; body: string | Buffer<ArrayBuffer>; headers: Record<string, string> } => ({
  method: 'POST', body,
  headers: {
    'content-type': 'application/json', 'x-webhook-event': 'order.paid',
    ...(id === null ? {} : { 'x-webhook-delivery': id }),
    'x-webhook-signature': webhooks.generateTestHeaderString({ payload: body.toString(), secret: by }),
  },
})

for (const { name, start } of adapters) {
  test(`${name}: what is signed is handled, once`, async (t) => {
    const seen: Webhook[] = []
    const send = await start(t, { secrets: ['whsec_other', secret], dedupe: dedupe(memoryStore()) }, (webhook) => {
      seen.push(webhook)
      return { status: 202, contentType: 'application/json', body: '{"taken":true}' }
    })
    const first = await send(signed('{"n":"ü"}'))
    assert.deepEqual([first.status, await first.text(), first.headers.get('content-type')], [202, '{"taken":true}', 'application/json'])
    const [webhook] = seen
    assert.deepEqual([webhook?.id, webhook?.text(), webhook?.json(), webhook?.header('X-Webhook-Event')], ['del_1', '{"n":"ü"}', { n: 'ü' }, 'order.paid'])
    assert.equal(first.headers.get('request-id'), webhook?.requestId)
    assert.equal(webhook?.claim?.requestId, webhook?.requestId)

    const repeat = await send(signed('{"n":"ü"}'))
    assert.deepEqual([repeat.status, await repeat.text(), repeat.headers.get('content-type')], [202, '{"taken":true}', 'application/json'])
    assert.equal(repeat.headers.get('idempotent-replayed'), 'true')
    assert.equal(repeat.headers.get('original-request-id'), webhook?.requestId)
    const other = await send(signed('{"n":2}'))
    assert.deepEqual([other.status, other.headers.get('content-type')], [422, 'application/problem+json'])
    assert.equal(seen.length, 1)
  })

  test(`${name}: a repeat while the first runs gets 409`, async (t) => {
    const gate = Promise.withResolvers<undefined>()
    let runs = 0
    const send = await start(t, { secrets: secret, dedupe: dedupe(memoryStore(), { lock: '1m' }) }, async () => {
      runs += 1
      await gate.promise
    })
    const first = send(signed('{}'))
    await until(() => runs === 1)
    const repeat = await send(signed('{}'))
    assert.equal(repeat.status, 409)
    assert.ok(Number(repeat.headers.get('retry-after')) > 0)
    gate.resolve(undefined)
    const answered = await first
    assert.equal((await repeat.json() as { originalRequestId: string }).originalRequestId, answered.headers.get('request-id'))
    assert.deepEqual([answered.status, await answered.text(), runs], [200, '', 1])
  })

  test(`${name}: without dedupe each one is handled, and Standard Webhooks too`, async (t) => {
    let runs = 0
    const send = await start(t, { secrets: secret }, (webhook) => {
      runs += 1
      assert.equal(webhook.claim, null)
      return { status: 204 }
    })
    const at = new Date()
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': new StandardWebhook(secret).sign('msg_1', at, '{}') }
    for (const request of [signed('{}'), signed('{}'), { method: 'POST', body: '{}', headers }]) assert.equal((await send(request)).status, 204)
    assert.equal(runs, 3)
  })

  test(`${name}: what is not signed gets 401 and the reason, and uses up no id`, async (t) => {
    const messages: string[] = []
    const send = await start(t, { secrets: secret, dedupe: dedupe(memoryStore()), onRefused: (message) => messages.push(message) }, () => undefined)
    for (const [request, reason] of [
      [signed('{}', 'del_1', 'whsec_wrong'), 'signature-mismatch'], [{ method: 'POST', body: '{}' }, 'signature-missing'],
      [{ ...signed('{}'), body: '{ }' }, 'signature-mismatch'],
    ] as const) {
      const response = await send(request)
      assert.deepEqual([response.status, (await response.json() as { reason: string }).reason], [401, reason])
    }
    assert.equal(messages.length, 3)
    assert.equal((await send(signed('{}'))).headers.get('idempotent-replayed'), null)
  })

  test(`${name}: what the handler throws becomes 500 without a word of it, is reported, and the next one runs`, async (t) => {
    const errors: [Error, Webhook | null][] = []
    let runs = 0
    const send = await start(t, { secrets: secret, dedupe: dedupe(memoryStore()), onError: (...reported) => errors.push(reported) }, () => {
      runs += 1
      if (runs === 1) throw new Error('password 1234')
      return { body: 'ok' }
    })
    const failed = await send(signed('{}'))
    assert.equal(failed.status, 500)
    assert.ok(!(await failed.text()).includes('1234'))
    assert.deepEqual([errors.length, errors[0]?.[0].message, errors[0]?.[1]?.id], [1, 'password 1234', 'del_1'])
    const again = await send(signed('{}'))
    assert.deepEqual([again.status, await again.text(), again.headers.get('idempotent-replayed')], [200, 'ok', null])
  })

  test(`${name}: a store that cannot be told, or not be asked, is reported`, async (t) => {
    const errors: string[] = []
    const inner = memoryStore()
    let isAway = false
    const store = { ...inner, claim: (request: Parameters<typeof inner.claim>[0]) => (isAway ? Promise.reject(new Error('claim: away')) : inner.claim(request)), finish: () => Promise.reject(new Error('finish: away')) }
    const send = await start(t, { secrets: secret, dedupe: dedupe(store), onError: (error) => errors.push(error.message) }, () => ({ status: 201 }))
    assert.equal((await send(signed('{}'))).status, 201, 'the work is done')
    isAway = true
    assert.equal((await send(signed('{}', 'del_2'))).status, 500, 'nothing ran')
    assert.deepEqual(errors, ['finish: away', 'claim: away'])
  })

  test(`${name}: the id can be taken from the body, and must be there`, async (t) => {
    let runs = 0
    const idOf = (webhook: Webhook) => (webhook.json() as { id: string }).id
    const send = await start(t, { secrets: secret, dedupe: dedupe(memoryStore()), idOf }, () => void (runs += 1))
    await send(signed('{"id":"evt_1"}', 'del_1'))
    assert.equal((await send(signed('{"id":"evt_1"}', 'del_2'))).headers.get('idempotent-replayed'), 'true')
    assert.equal(runs, 1)
    const byDelivery = await start(t, { secrets: secret, dedupe: dedupe(memoryStore()) }, () => assert.fail('it ran'))
    assert.equal((await byDelivery(signed('{}', null))).status, 400)
  })

  test(`${name}: bodies up to the limit, whether their length is said or not; only POST`, async (t) => {
    let runs = 0
    const send = await start(t, { secrets: secret, maxBodyBytes: 1_000 }, () => void (runs += 1))
    assert.equal((await send(signed('x'.repeat(1_000)))).status, 200)
    for (const bytes of [1_001, 3_000_000]) {
      const whole = signed('x'.repeat(bytes))
      assert.equal((await send(whole)).status, 413, `${bytes} bytes`)
      const stream = () => new Blob(['x'.repeat(bytes)]).stream()
      assert.equal((await send({ ...whole, body: stream(), duplex: 'half' })).status, 413, `${bytes} bytes of unsaid length`)
    }
    assert.equal((await send({ ...signed('x'.repeat(10)), body: new Blob(['x'.repeat(10)]).stream(), duplex: 'half' })).status, 200)
    assert.equal(runs, 2)
    const get = await send({ method: 'GET' })
    assert.deepEqual([get.status, get.headers.get('allow')], [405, 'POST'])
  })

  test(`${name}: the body is the very bytes, whatever they are`, async (t) => {
    const bytes = Buffer.from('\ufeff{"a":"\u0000ÿ"}\r\n')
    let seen: Uint8Array = new Uint8Array()
    const send = await start(t, { secrets: secret }, (webhook) => {
      seen = webhook.body
      return { body: webhook.body, contentType: 'application/octet-stream' }
    })
    const response = await send(signed(bytes))
    assert.deepEqual(Buffer.from(seen), bytes)
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), bytes)
  })

  test(`${name}: options that cannot be meant are refused before the first request`, async (t) => {
    for (const options of [{ secrets: '' }, { secrets: [] }, { secrets: secret, tolerance: 'soon' }, { secrets: secret, maxBodyBytes: 0 }]) {
      await assert.rejects(start(t, options as HandlerOptions, () => undefined), (error) => error instanceof TypeError || error instanceof RangeError)
    }
  })
}

test('fetch: a Response may be returned, and repeats get its status, body and type', async () => {
  const handler = fetchHandler({ secrets: secret, dedupe: dedupe(memoryStore()) }, () => Response.json({ n: 1 }, { status: 201 }))
  const request = () => new Request('http://receiver.example/', signed('{}'))
  for (const replayed of [null, 'true']) {
    const response = await handler(request())
    assert.deepEqual([response.status, await response.json(), response.headers.get('content-type')], [201, { n: 1 }, 'application/json'])
    assert.equal(response.headers.get('idempotent-replayed'), replayed)
  }
})

test('a body that something else has read: 500, and the error says what to do', async (t) => {
  const errors: string[] = []
  const options = { secrets: secret, onError: (error: Error, webhook: Webhook | null) => void errors.push(`${error.message} ${webhook?.id}`) }
  const request = new Request('http://receiver.example/', signed('{}'))
  await request.text()
  assert.equal((await fetchHandler(options, () => undefined)(request)).status, 500)

  const handler = nodeHandler(options, () => undefined)
  const { url } = await serve(t, async (incoming, response) => {
    await readAll(incoming)
    await handler(Object.assign(incoming, { body: {} }), response)
  })
  assert.equal((await fetch(url, signed('{}'))).status, 500)
  const { url: textUrl } = await serve(t, (incoming, response) => handler(incoming.setEncoding('utf8'), response))
  assert.equal((await fetch(textUrl, signed('{}'))).status, 500)
  assert.match(errors[0] ?? '', /clone.* undefined$/)
  assert.match(errors[1] ?? '', /express\.raw.* undefined$/)
  assert.match(errors[2] ?? '', /setEncoding.* undefined$/)
})

test('bytes that a parser of raw bodies has left are used', async (t) => {
  const handler = nodeHandler({ secrets: secret, maxBodyBytes: 100 }, (webhook) => ({ body: webhook.body }))
  for (const place of ['body', 'rawBody']) {
    const { url } = await serve(t, async (incoming, response) => {
      const bytes = await readAll(incoming)
      await handler(Object.assign(incoming, { body: {}, [place]: bytes }), response)
    })
    const response = await fetch(url, signed('{"n":1}'))
    assert.deepEqual([response.status, await response.text()], [200, '{"n":1}'])
    assert.equal((await fetch(url, signed('x'.repeat(101)))).status, 413)
  }
})

test('a sender that hangs up in the middle of a body: nothing runs, and nothing breaks', async (t) => {
  const ended: ServerResponse[] = []
  let begun = 0
  const handler = nodeHandler({ secrets: secret, onError: (error) => assert.fail(error) }, () => assert.fail('it ran'))
  const { port } = await serve(t, async (incoming, response) => {
    begun += 1
    await handler(incoming, response)
    ended.push(response)
  })
  const socket = connect(port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
  await until(() => begun === 1)
  socket.destroy()
  await until(() => ended.length === 1)
  assert.equal(ended[0]?.headersSent, false)
})

async function readAll(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
