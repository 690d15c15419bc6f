import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { HttpClientOptions } from '../../shared/http/client.ts'
import type { PostRequest } from '../../shared/http/post.ts'
import { attemptAt, clientFor, excerptIn, receiverFor, request, shortOutcome, untilNoSockets } from '../support/http-client.ts'
import { answering, closedPort, keepWriting, response, untilNoConnections, type ReceiverBehaviour } from '../support/receivers.ts'

const faults: string[] = []
process.on('uncaughtExceptionMonitor', (error, origin) => faults.push(`${origin}: ${String(error)}`))
after(() => assert.deepEqual(faults, [], 'nothing may surface outside of outcomes'))

/** Far above what a quiet machine needs, far below for ever: these receivers never end by themselves. */
const slackMs = 5000

type Case = {
  readonly name: string
  readonly behaviour: ReceiverBehaviour
  readonly expected: string | readonly string[]
  readonly changes?: Partial<PostRequest>
  readonly options?: HttpClientOptions
  /** Reads nothing, so it does not notice the end of the connection either. */
  readonly isDeaf?: true
}

const check = async (t: TestContext, { behaviour, expected, changes, options, isDeaf }: Case): Promise<void> => {
  const { attempted, receiver, http } = await attemptAt(t, behaviour, changes, options)
  assert.ok([expected].flat().includes(shortOutcome(attempted)), `${shortOutcome(attempted)}: ${JSON.stringify(attempted.outcome)}`)
  await untilNoSockets(http)
  if (!isDeaf) await untilNoConnections(receiver)
  assert.equal(attempted.redone, false)
}

const onRequest = (onRequest: ReceiverBehaviour['onRequest'] & {}): ReceiverBehaviour => ({ onRequest })
const answeringAndClosing = (text: string): ReceiverBehaviour => onRequest((socket) => void socket.end(text))
const answeringAndResetting = (text: string): ReceiverBehaviour =>
  onRequest((socket) => void socket.write(text, () => socket.resetAndDestroy()))

const tooLarge = 'HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'

const heldToTheDeadline: Case[] = [
  { name: 'never answers', behaviour: onRequest(() => {}), expected: 'timeout/sent' },
  {
    name: 'never reads', isDeaf: true, expected: 'timeout/sent',
    behaviour: { onConnection: (socket) => void socket.pause(), onFirstBytes: () => {} },
  },
  {
    name: 'never reads 50 MiB of body', isDeaf: true, expected: 'timeout/sent', changes: { body: Buffer.alloc(50 * 2 ** 20, 'x') },
    behaviour: { onConnection: (socket) => void socket.pause(), onFirstBytes: (socket) => void socket.pause() },
  },
  {
    name: 'drips headers', expected: 'timeout/sent',
    behaviour: onRequest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      keepWriting(socket, 'X-Drip: 1\r\n', 20)
    }),
  },
  {
    name: 'sends 103 again and again', expected: 'timeout/sent',
    behaviour: onRequest((socket) => keepWriting(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n', 20)),
  },
  {
    name: 'floods with 102', expected: 'timeout/sent',
    behaviour: onRequest((socket) => keepWriting(socket, 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(500), 0)),
  },
  {
    name: 'drips the body of a 200', expected: 'status:200',
    behaviour: onRequest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      keepWriting(socket, '1\r\nx\r\n', 20)
    }),
  },
  {
    name: 'drips the body of a 500', expected: 'status:500',
    behaviour: onRequest((socket) => {
      socket.write('HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n')
      keepWriting(socket, 'x', 20)
    }),
  },
  { name: 'sends a status and no body', behaviour: answering('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'), expected: 'status:200' },
  { name: 'never shakes hands in TLS', behaviour: onRequest(() => {}), expected: 'connect_timeout/before_send' },
]

for (const row of heldToTheDeadline) {
  test(`deadline: a receiver that ${row.name}`, async (t) => {
    const deadlineMs = 400
    const receiver = await receiverFor(t, row.behaviour)
    // Far off, so that a socket that is still connecting is closed by the deadline or not at all.
    const http = clientFor(t, { connectTimeoutMs: 60_000 })
    const url = row.name.includes('TLS') ? receiver.url.replace('http:', 'https:') : receiver.url
    const attempted = await http.post(request(url, { ...row.changes, deadlineMs }))
    assert.equal(shortOutcome(attempted), row.expected)
    // Timers may fire a millisecond early.
    assert.ok(attempted.durationMs >= deadlineMs - 2 && attempted.durationMs < deadlineMs + slackMs, `took ${attempted.durationMs} ms`)
    await untilNoSockets(http)
    if (!row.isDeaf) await untilNoConnections(receiver)
  })
}

test('deadline: a look-up that never returns', async (t) => {
  const http = clientFor(t, { lookup: () => {}, connectTimeoutMs: 60_000 })
  const attempted = await http.post(request('http://hooks.example/in', { deadlineMs: 300 }))
  assert.equal(shortOutcome(attempted), 'connect_timeout/before_send')
  assert.ok(attempted.durationMs < 300 + slackMs)
  await untilNoSockets(http)
})

test('the connect timeout covers the TLS handshake and ends before the deadline', async (t) => {
  const receiver = await receiverFor(t, { onRequest: () => {} })
  const http = clientFor(t, { connectTimeoutMs: 200 })
  const attempted = await http.post(request(receiver.url.replace('http:', 'https:'), { deadlineMs: 60_000 }))
  assert.equal(shortOutcome(attempted), 'connect_timeout/before_send')
  await untilNoSockets(http)
})

const broken: Case[] = [
  {
    name: 'resets on connecting', expected: ['reset/sent', 'reset/before_send'],
    behaviour: { onConnection: (socket) => void socket.resetAndDestroy() },
  },
  { name: 'resets at the first byte', behaviour: { onFirstBytes: (socket) => void socket.resetAndDestroy() }, expected: 'reset/sent' },
  { name: 'resets after the request', behaviour: onRequest((socket) => void socket.resetAndDestroy()), expected: 'reset/sent' },
  { name: 'closes after the request', behaviour: onRequest((socket) => void socket.end()), expected: 'reset/sent' },
  { name: 'closes within the status line', behaviour: answeringAndClosing('HTTP/1.1 20'), expected: 'reset/sent' },
  { name: 'closes within the headers', behaviour: answeringAndClosing('HTTP/1.1 200 OK\r\nContent-Le'), expected: 'reset/sent' },
  {
    name: 'closes within the body', expected: 'status:200',
    behaviour: answeringAndClosing('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'),
  },
  {
    name: 'closes within a chunk', expected: 'status:503',
    behaviour: answeringAndClosing('HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc'),
  },
  {
    name: 'resets within the body', expected: 'status:200',
    behaviour: answeringAndResetting('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'),
  },
  {
    name: 'answers 200 with a broken chunk', expected: 'status:200',
    behaviour: answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
  },
  { name: 'speaks HTTP/1.0', behaviour: answeringAndClosing('HTTP/1.0 200 OK\r\n\r\nfine'), expected: 'status:200' },
  {
    name: 'gives no reason phrase', expected: 'status:202',
    behaviour: answeringAndClosing('HTTP/1.1 202\r\nConnection: close\r\n\r\n'),
  },
  {
    name: 'gives 204 a body', expected: 'status:204',
    behaviour: answering('HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc'),
  },
  {
    name: 'sends more than its Content-Length', expected: 'status:200',
    behaviour: answering('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc'),
  },
  {
    name: 'sends interim answers first', expected: 'status:201',
    behaviour: answeringAndClosing('HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 201 C\r\n\r\n'),
  },
  {
    name: 'sends 100 unasked', expected: 'status:200',
    behaviour: answering('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
  },
  {
    name: 'sends 100 twice, 103, 100 and later its answer', expected: 'status:422',
    behaviour: onRequest((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 100\r\nX: y\r\n\r\nHTTP/1.1 103 Early\r\n\r\n')
      setTimeout(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 20)
      setTimeout(() => socket.write('HTTP/1.1 422 No\r\nContent-Length: 12\r\n\r\nHTTP/1.1 100'), 40)
    }),
  },
  { name: 'sends 100 and closes', behaviour: answeringAndClosing('HTTP/1.1 100 Continue\r\n\r\n'), expected: 'reset/sent' },
  {
    name: 'switches protocols unasked', expected: 'protocol/sent',
    behaviour: answering('HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
  },
  { name: 'sends 101 as if it were final', behaviour: answering('HTTP/1.1 101 S\r\n\r\n'), expected: 'protocol/sent' },
  {
    name: 'answers with status 999', expected: 'status:999',
    behaviour: answering('HTTP/1.1 999 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
  },
  { name: 'answers with status 099', behaviour: answering('HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n'), expected: 'status:99' },
  { name: 'answers with status 1000', behaviour: answering('HTTP/1.1 1000 No\r\n\r\n'), expected: 'protocol/sent' },
  { name: 'answers with two digits', behaviour: answering('HTTP/1.1 20 No\r\n\r\n'), expected: 'protocol/sent' },
  { name: 'speaks something else', behaviour: answering('SSH-2.0-OpenSSH_9.2\r\n'), expected: 'protocol/sent' },
  {
    name: 'gives two lengths', expected: 'protocol/sent',
    behaviour: answering('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
  },
  {
    name: 'sends 40 KiB of headers', expected: 'protocol/sent',
    behaviour: answering(`HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(40 * 1024)}\r\n\r\n`),
  },
  {
    name: 'sends headers for ever', expected: 'protocol/sent',
    behaviour: onRequest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      keepWriting(socket, 'X-A: b\r\n'.repeat(100), 0)
    }),
  },
  {
    name: 'sends 2,000 small headers', expected: 'status:200',
    behaviour: answering(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(2000)}Connection: close\r\nContent-Length: 0\r\n\r\n`),
  },
  {
    name: 'refuses early and closes', expected: 'status:413', changes: { body: Buffer.alloc(8 * 2 ** 20) },
    behaviour: { onFirstBytes: (socket) => void socket.end(tooLarge) },
  },
  {
    name: 'refuses early and resets', expected: ['status:413', 'reset/sent'], changes: { body: Buffer.alloc(8 * 2 ** 20) },
    behaviour: { onFirstBytes: (socket) => void socket.write(tooLarge, () => socket.resetAndDestroy()) },
  },
  {
    name: 'refuses early and stays open without reading', isDeaf: true, expected: 'status:413',
    changes: { body: Buffer.alloc(50 * 2 ** 20) },
    behaviour: { onFirstBytes: (socket) => void socket.pause().write(tooLarge) },
  },
]

for (const row of broken) {
  test(`a receiver that ${row.name}`, (t) => check(t, { ...row, options: { keepAliveTimeoutMs: 50 } }))
}

test('bodies of 50 MiB and endless ones: the first KiB is kept, 16 KiB are read, the rest is not taken', async (t) => {
  const written: number[] = []
  const behaviour = onRequest((socket, { number }) => {
    socket.once('close', () => written.push(socket.bytesWritten))
    socket.write(number % 2 === 0 ? 'HTTP/1.1 200 OK\r\n\r\n' : `HTTP/1.1 500 No\r\nContent-Length: ${50 * 2 ** 20}\r\n\r\n`)
    keepWriting(socket, Buffer.alloc(64 * 1024, 'y'), 0)
  })
  const receiver = await receiverFor(t, behaviour)
  const http = clientFor(t)
  const before = process.memoryUsage().rss
  const all = await Promise.all(Array.from({ length: 40 }, () => http.post(request(receiver.url))))
  const grownBytes = process.memoryUsage().rss - before
  assert.deepEqual(new Set(all.map(shortOutcome)), new Set(['status:200', 'status:500']))
  assert.ok(all.every((attempted) => excerptIn(attempted) === 'y'.repeat(1024)))
  assert.ok(grownBytes < 200 * 2 ** 20, `memory grew by ${grownBytes >> 20} MiB`)
  await untilNoConnections(receiver)
  // What the kernel's buffers took, at most.
  assert.ok(Math.max(...written) < 30 * 2 ** 20, `one connection took ${Math.max(...written)} bytes`)
})

test('a gzip bomb is not decompressed', async (t) => {
  const bomb = gzipSync(Buffer.alloc(50 * 2 ** 20))
  const { attempted, http } = await attemptAt(t, answering(response(200, { headers: ['Content-Encoding: gzip'], body: bomb })))
  assert.equal(shortOutcome(attempted), 'status:200')
  assert.ok(Buffer.byteLength(excerptIn(attempted) ?? '') <= 1024)
  assert.ok(excerptIn(attempted)?.startsWith('\u001f\ufffd\b'))
  await untilNoSockets(http)
})

test('a body that looks like 100 Continue is a body', async (t) => {
  const { attempted } = await attemptAt(t, onRequest((socket) => {
    socket.write('HTTP/1.1 422 No\r\nContent-Length: 25\r\n\r\n')
    setTimeout(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 20)
  }))
  assert.equal(excerptIn(attempted), 'HTTP/1.1 100 Continue\r\n\r\n')
})

test('a closed port is connect_refused, before anything was sent', async (t) => {
  const http = clientFor(t)
  const attempted = await http.post(request(`http://127.0.0.1:${await closedPort()}/`))
  assert.equal(shortOutcome(attempted), 'connect_refused/before_send')
  await untilNoSockets(http)
  assert.deepEqual(http.stats(), { sockets: 0, origins: 0 })
})

test('a name with two closed addresses is connect_refused too', async (t) => {
  const http = clientFor(t, {
    lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }, { address: '127.0.0.2', family: 4 }]),
  })
  assert.equal(shortOutcome(await http.post(request(`http://two.example:${await closedPort()}/`))), 'connect_refused/before_send')
})

test('an unknown name is dns_not_found, a name server in trouble dns_failed', async (t) => {
  const post = async (code: string): Promise<string> => {
    const http = clientFor(t, { lookup: (_name, _options, callback) => callback(Object.assign(new Error(code), { code }), []) })
    return shortOutcome(await http.post(request('http://no-such.invalid/')))
  }
  assert.equal(await post('ENOTFOUND'), 'dns_not_found/before_send')
  assert.equal(await post('EAI_AGAIN'), 'dns_failed/before_send')
  // The system's own resolver, whichever of the two it says here.
  assert.match(shortOutcome(await clientFor(t).post(request('http://no-such.invalid/'))), /^(dns_|connect_timeout)/)
})

test('after the process was busy past the deadline, an answer that has come is still read', async (t) => {
  const { attempted } = await attemptAt(t, onRequest((socket) => {
    // In the kernel's buffers of the client when this returns; its timer is overdue by then.
    socket.write(response(200))
    const busyUntil = performance.now() + 300
    while (performance.now() < busyUntil);
  }), { deadlineMs: 200 })
  assert.equal(shortOutcome(attempted), 'status:200')
})
