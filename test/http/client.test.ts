import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHttpClient } from '../../shared/http/client.ts'
import { attemptAt, clientFor, excerptIn, receiverFor, request, shortOutcome, untilNoSockets } from '../support/http-client.ts'
import { answering, response } from '../support/receivers.ts'
import { until } from '../support/until.ts'

test('what is sent: the target as written, the headers in order, latin1 values, the body byte for byte with its length', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t)
  const body = Buffer.from('{"name":"é\u2028 ✓"}')
  const url = `http://127.0.0.1:${receiver.port}/a//b/%2Ft?sp=%2Fm&sig=6V_x-y`
  const headers = ['Content-Type', 'application/json', 'X-Webhook-Event', 'café.paid', 'User-Agent', 'posthouse/1']
  const attempted = await http.post(request(url, { body, headers }))
  assert.equal(shortOutcome(attempted), 'status:200')
  const [received] = receiver.requests
  assert.equal(received?.head, [
    'POST /a//b/%2Ft?sp=%2Fm&sig=6V_x-y HTTP/1.1', `host: 127.0.0.1:${receiver.port}`, 'connection: keep-alive',
    'Content-Type: application/json', 'X-Webhook-Event: café.paid', 'User-Agent: posthouse/1', `content-length: ${body.length}`,
  ].join('\r\n'))
  assert.deepEqual(received?.body, body)
})

test('an empty body and one of 20 MiB', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t)
  const large = Buffer.alloc(20 * 2 ** 20, 'z')
  await http.post(request(receiver.url, { body: Buffer.alloc(0) }))
  await http.post(request(receiver.url, { body: large }))
  assert.deepEqual(receiver.requests.map(({ body }) => body.length), [0, large.length])
  assert.equal(receiver.requests[0]?.headers['content-length'], '0')
})

test('what is told of a response: status, Retry-After as received, the first Date, the excerpt', async (t) => {
  const headers = ['Retry-After: 120', 'retry-after: Wed, 21 Oct 2026 07:28:00 GMT', 'Date: Wed, 21 Oct 2026 07:00:00 GMT', 'Date: x']
  const { attempted } = await attemptAt(t, answering(response(503, { headers, body: 'try\0 later' })))
  assert.deepEqual(attempted.outcome, {
    kind: 'response', status: 503, excerpt: 'try later',
    retryAfter: ['120', 'Wed, 21 Oct 2026 07:28:00 GMT'], date: 'Wed, 21 Oct 2026 07:00:00 GMT',
  })
  assert.ok(Number.isInteger(attempted.durationMs))
})

test('absent headers, no body, excerpt switched off', async (t) => {
  const bare = await attemptAt(t, answering(response(200, { body: '' })))
  assert.deepEqual(bare.attempted.outcome, { kind: 'response', status: 200, retryAfter: [], date: null, excerpt: '' })
  const off = await attemptAt(t, {}, { excerptBytes: 0 })
  assert.equal(excerptIn(off.attempted), null)
})

test('the excerpt of a body that comes in many pieces', async (t) => {
  const { attempted, http } = await attemptAt(t, {
    onRequest: (socket) => {
      socket.write('HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n')
      for (let piece = 0; piece < 1000; piece += 1) socket.write('4\r\nabcd\r\n')
      socket.write('0\r\n\r\n')
    },
  })
  assert.equal(excerptIn(attempted), 'abcd'.repeat(256))
  assert.equal(http.stats().sockets, 1, 'a body that ended leaves the socket open')
})

test('redirects are outcomes, never followed', async (t) => {
  const elsewhere = await receiverFor(t)
  const http = clientFor(t)
  for (const status of [301, 302, 303, 307, 308]) {
    const receiver = await receiverFor(t, answering(response(status, { headers: [`Location: ${elsewhere.url}`] })))
    assert.equal(shortOutcome(await http.post(request(receiver.url))), `status:${status}`)
  }
  assert.equal(elsewhere.accepted(), 0)
})

test('a URL that cannot be requested is invalid_url, and never repeated in the outcome', async (t) => {
  const http = clientFor(t)
  const urls = ['', 'hook', 'ftp://hook.example/', 'https://user:secret@hook.example/', 'http://:80/', 'http://hook.example:99999/']
  for (const url of urls) {
    const attempted = await http.post(request(url))
    assert.equal(shortOutcome(attempted), 'invalid_url/before_send', url)
    assert.ok(!JSON.stringify(attempted).includes('secret'))
  }
})

test('headers that cannot be sent are internal, and nothing is sent', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t)
  const wrong = [
    ['X-A', 'заказ'], ['X-A', 'a\r\nX-B: c'], ['X A', 'b'], ['X-A'], ['Content-Length', '5', 'Content-Length', '5'], ['Expect', '100-continue'],
  ]
  for (const headers of wrong) {
    assert.equal(shortOutcome(await http.post(request(receiver.url, { headers }))), 'internal/before_send', String(headers))
  }
  assert.equal(receiver.accepted(), 0)
  assert.deepEqual(http.stats(), { sockets: 0, origins: 0 })
})

test('an abort ends what runs as shutting_down, whatever it waits for', async (t) => {
  const receiver = await receiverFor(t, { onRequest: () => {} })
  const abort = new AbortController()
  const { signal } = abort
  const http = clientFor(t, { maxConnectionsPerOrigin: 2, lookup: () => {} })
  const running = [
    http.post(request(receiver.url, { signal })),
    http.post(request(receiver.url, { signal })),
    http.post(request(receiver.url, { signal })),
    http.post(request('http://hangs.example/', { signal })),
  ]
  await until(() => receiver.requests.length === 2)
  abort.abort()
  assert.deepEqual((await Promise.all(running)).map(shortOutcome), [
    'shutting_down/sent', 'shutting_down/sent', 'shutting_down/before_send', 'shutting_down/before_send',
  ])
  assert.equal(shortOutcome(await http.post(request(receiver.url, { signal }))), 'shutting_down/before_send')
  await untilNoSockets(http)
  assert.equal(http.stats().origins, 0)
})

test('a request aborted before it was written to the socket it was given is never sent', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t)
  await http.post(request(receiver.url))
  const abort = new AbortController()
  const running = http.post(request(receiver.url, { signal: abort.signal }))
  abort.abort()
  assert.equal(shortOutcome(await running), 'shutting_down/before_send')
  await untilNoSockets(http)
  // A connection made for it would be the second of three.
  await http.post(request(receiver.url))
  assert.deepEqual([receiver.requests.length, receiver.accepted()], [2, 2])
})

test('attempts leave no timers behind', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t)
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  for (let number = 0; number < 20; number += 1) await http.post(request(receiver.url, { deadlineMs: 60_000 }))
  assert.ok(timers() < before + 20, `${timers() - before} more timers`)
})

test('an abort after the status was read leaves the response standing', async (t) => {
  const abort = new AbortController()
  const { attempted } = await attemptAt(t, {
    onRequest: (socket) => {
      socket.write('HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\nhalf')
      setTimeout(() => abort.abort(), 50)
    },
  }, { signal: abort.signal })
  assert.equal(shortOutcome(attempted), 'status:202')
  assert.equal(excerptIn(attempted), 'half')
})

test('close lets what runs and what waits finish, takes nothing new, and ends every socket', async (t) => {
  const receiver = await receiverFor(t, { onRequest: (socket) => void setTimeout(() => socket.write(response(200)), 50) })
  const http = createHttpClient({ maxConnectionsPerOrigin: 1 })
  const running = [http.post(request(receiver.url)), http.post(request(receiver.url))]
  await until(() => receiver.requests.length === 1)
  const closed = http.close()
  assert.equal(http.close(), closed, 'a second call joins the first')
  assert.equal(shortOutcome(await http.post(request(receiver.url))), 'shutting_down/before_send')
  assert.deepEqual((await Promise.all(running)).map(shortOutcome), ['status:200', 'status:200'])
  await closed
  assert.deepEqual(http.stats(), { sockets: 0, origins: 0 })
})

test('destroy ends what runs at once', async (t) => {
  const receiver = await receiverFor(t, { onRequest: () => {} })
  const http = createHttpClient()
  const running = http.post(request(receiver.url))
  await until(() => receiver.requests.length === 1)
  const closed = http.close()
  await http.destroy()
  await closed
  assert.equal(shortOutcome(await running), 'shutting_down/sent')
  assert.deepEqual(http.stats(), { sockets: 0, origins: 0 })
})
