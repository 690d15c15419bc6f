import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { attemptAt, clientFor, receiverFor, request, shortOutcome } from '../support/http-client.ts'
import { canMakeCertificates, makeCertificates } from '../support/certificates.ts'
import { response, type ReceiverBehaviour } from '../support/receivers.ts'
import { until } from '../support/until.ts'

type Behave = Parameters<ReceiverBehaviour['onRequest'] & {}>[0]

/** Answers the first request of every socket, and treats the others like this. */
const afterTheFirst = (treat: (socket: Behave, number: number) => void): ReceiverBehaviour => ({
  onRequest: (socket, { number, numberOnSocket }) => {
    if (numberOnSocket === 1) socket.write(response(200))
    else treat(socket, number)
  },
})

test('a keep-alive socket is used again', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t)
  const first = await http.post(request(receiver.url))
  const second = await http.post(request(receiver.url))
  assert.deepEqual([first.reusedSocket, second.reusedSocket], [false, true])
  assert.equal(receiver.accepted(), 1)
  assert.deepEqual(http.stats(), { sockets: 1, origins: 1 })
})

test('a server that says it closes: the next request, made at once, is on a socket of its own', async (t) => {
  const receiver = await receiverFor(t, { onRequest: (socket) => void socket.end(response(200, { headers: ['Connection: close'] })) })
  const http = clientFor(t)
  for (let number = 0; number < 10; number += 1) {
    const attempted = await http.post(request(receiver.url))
    assert.deepEqual([shortOutcome(attempted), attempted.reusedSocket, attempted.redone], ['status:200', false, false])
  }
  assert.deepEqual([receiver.requests.length, receiver.accepted()], [10, 10])
})

test('a server that closes right after each answer: every request succeeds', async (t) => {
  const receiver = await receiverFor(t, { onRequest: (socket) => void socket.end(response(200)) })
  const http = clientFor(t)
  let redone = 0
  for (let number = 0; number < 20; number += 1) {
    const attempted = await http.post(request(receiver.url))
    assert.equal(shortOutcome(attempted), 'status:200')
    redone += Number(attempted.redone)
    if (number % 2 === 0) await delay(10)
  }
  assert.equal(receiver.requests.length, 20 + redone, 'nothing is sent twice but what is reported as redone')
})

test('a server that closes idle sockets after 20 ms, and requests about as far apart: every request succeeds', async (t) => {
  const receiver = await receiverFor(t, {
    onRequest: (socket) => {
      socket.write(response(200))
      socket.setTimeout(20, () => socket.destroy())
    },
  })
  const http = clientFor(t)
  for (let number = 0; number < 100; number += 1) {
    const attempted = await http.post(request(receiver.url))
    assert.equal(shortOutcome(attempted), 'status:200', JSON.stringify({ number, attempted }))
    await delay(18 + (number % 5))
  }
})

for (const [how, treat] of [
  ['resets', (socket: Behave) => void socket.resetAndDestroy()],
  ['closes', (socket: Behave) => void socket.end()],
] as const) {
  test(`a used socket that ${how} under the request: it is redone once, at once, on a fresh socket`, async (t) => {
    const receiver = await receiverFor(t, afterTheFirst(treat))
    const http = clientFor(t)
    await http.post(request(receiver.url))
    const attempted = await http.post(request(receiver.url))
    assert.equal(shortOutcome(attempted), 'status:200')
    assert.deepEqual([attempted.redone, attempted.reusedSocket], [true, false])
    assert.equal(receiver.requests.length, 3)
    assert.deepEqual(receiver.requests[1]?.body, receiver.requests[2]?.body)
    assert.equal(receiver.requests[1]?.head, receiver.requests[2]?.head)
  })
}

const skip = !canMakeCertificates && 'no openssl on this machine'

test('the same under TLS, where the end of the stream is a message of its own', { skip }, async (t) => {
  const { authority, valid } = makeCertificates()
  const receiver = await receiverFor(t, { ...afterTheFirst((socket) => void socket.end()), tls: valid })
  const http = clientFor(t, { ca: authority })
  await http.post(request(receiver.url))
  const attempted = await http.post(request(receiver.url))
  assert.equal(shortOutcome(attempted), 'status:200')
  assert.equal(attempted.redone, true)
})

test('a fresh socket that is reset: not redone', async (t) => {
  const { attempted, receiver } = await attemptAt(t, { onRequest: (socket) => void socket.resetAndDestroy() })
  assert.equal(shortOutcome(attempted), 'reset/sent')
  assert.deepEqual([attempted.redone, receiver.requests.length], [false, 1])
})

test('the redone request that is reset too: a failure, after two sendings', async (t) => {
  const receiver = await receiverFor(t, {
    onRequest: (socket, { number }) => void (number === 1 ? socket.write(response(200)) : socket.resetAndDestroy()),
  })
  const http = clientFor(t)
  await http.post(request(receiver.url))
  const attempted = await http.post(request(receiver.url))
  assert.equal(shortOutcome(attempted), 'reset/sent')
  assert.deepEqual([attempted.redone, receiver.requests.length], [true, 3])
})

for (const bytes of ['HTTP/1.1 2', '\r\n']) {
  test(`a used socket that is reset after ${JSON.stringify(bytes)}: not redone`, async (t) => {
    const receiver = await receiverFor(t, afterTheFirst((socket) => void socket.end(bytes)))
    const http = clientFor(t)
    await http.post(request(receiver.url))
    const attempted = await http.post(request(receiver.url))
    assert.equal(shortOutcome(attempted), 'reset/sent')
    assert.deepEqual([attempted.redone, receiver.requests.length], [false, 2])
  })
}

test('a used socket that times out: not redone', async (t) => {
  const receiver = await receiverFor(t, afterTheFirst(() => {}))
  const http = clientFor(t)
  await http.post(request(receiver.url))
  const attempted = await http.post(request(receiver.url, { deadlineMs: 300 }))
  assert.equal(shortOutcome(attempted), 'timeout/sent')
  assert.deepEqual([attempted.redone, receiver.requests.length], [false, 2])
})

test('both sendings share one deadline', async (t) => {
  const receiver = await receiverFor(t, {
    onRequest: (socket, { number }) => {
      if (number === 1) socket.write(response(200))
      else if (number === 2) setTimeout(() => socket.resetAndDestroy(), 250)
    },
  })
  const http = clientFor(t)
  await http.post(request(receiver.url))
  const attempted = await http.post(request(receiver.url, { deadlineMs: 400 }))
  assert.equal(shortOutcome(attempted), 'timeout/sent')
  assert.equal(attempted.redone, true)
  assert.ok(attempted.durationMs >= 398 && attempted.durationMs < 640, `two deadlines would be 650 ms; took ${attempted.durationMs}`)
  assert.equal(receiver.requests.length, 3)
})

test('a connection that is reset while it is made for the redo: not redone again', async (t) => {
  const receiver = await receiverFor(t, afterTheFirst((socket) => void socket.resetAndDestroy()))
  let asked = 0
  const http = clientFor(t, {
    lookup: (_name, _options, callback) => {
      asked += 1
      if (asked === 1) callback(null, [{ address: '127.0.0.1', family: 4 }])
      else callback(Object.assign(new Error('reset'), { code: 'ECONNRESET' }), [])
    },
  })
  const url = `http://hooks.example:${receiver.port}/`
  await http.post(request(url))
  const attempted = await http.post(request(url))
  assert.deepEqual([shortOutcome(attempted), attempted.redone, asked], ['reset/sent', true, 2])
})

test('a connection that cannot be made for the redo: sent, as the first sending may have been read', async (t) => {
  const receiver = await receiverFor(t, afterTheFirst((socket) => void receiver.close().then(() => socket.resetAndDestroy())))
  const http = clientFor(t)
  await http.post(request(receiver.url))
  const attempted = await http.post(request(receiver.url))
  assert.deepEqual([shortOutcome(attempted), attempted.redone], ['connect_refused/sent', true])
})

test('a whole pool of dead sockets: each request is redone on a fresh one, never on another dead one', async (t) => {
  const atOnce = 8
  let waiting: Behave[] = []
  const receiver = await receiverFor(t, {
    onRequest: (socket, { number, numberOnSocket }) => {
      if (number <= atOnce) {
        // Answered together, so that there are eight sockets.
        waiting.push(socket)
        if (number === atOnce) for (const each of waiting) each.write(response(200))
      } else if (numberOnSocket === 1) {
        socket.write(response(200))
      } else {
        socket.resetAndDestroy()
      }
    },
  })
  const http = clientFor(t)
  await Promise.all(Array.from({ length: atOnce }, () => http.post(request(receiver.url))))
  assert.equal(receiver.accepted(), atOnce)
  waiting = []
  // Fewer than there are dead sockets, so that others lie ready.
  const again = await Promise.all(Array.from({ length: 3 }, () => http.post(request(receiver.url))))
  assert.ok(again.every((attempted) => shortOutcome(attempted) === 'status:200' && attempted.redone), JSON.stringify(again))
})

test('a socket that closed while idle is not used: the next request is sent once, on a new one', async (t) => {
  const receiver = await receiverFor(t, {
    onRequest: (socket) => {
      socket.write(response(200))
      setTimeout(() => socket.end(), 20)
    },
  })
  const http = clientFor(t)
  await http.post(request(receiver.url))
  await until(() => http.stats().sockets === 0)
  const attempted = await http.post(request(receiver.url))
  assert.equal(shortOutcome(attempted), 'status:200')
  assert.deepEqual([attempted.redone, attempted.reusedSocket, receiver.requests.length], [false, false, 2])
})

test('a socket that still carries the rest of a refused body is not used again', async (t) => {
  const receiver = await receiverFor(t, {
    onFirstBytes: (socket) => {
      socket.pause()
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n')
    },
  })
  const http = clientFor(t)
  assert.equal(shortOutcome(await http.post(request(receiver.url, { body: Buffer.alloc(50 * 2 ** 20) }))), 'status:413')
  const next = await http.post(request(receiver.url, { deadlineMs: 2000 }))
  assert.deepEqual([shortOutcome(next), next.reusedSocket, receiver.accepted()], ['status:413', false, 2])
})

test('a used socket that is reset after 100 Continue: not redone, as the server has begun to read', async (t) => {
  const receiver = await receiverFor(t, afterTheFirst((socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n')))
  const http = clientFor(t)
  await http.post(request(receiver.url))
  const attempted = await http.post(request(receiver.url))
  assert.deepEqual([shortOutcome(attempted), attempted.redone], ['reset/sent', false])
})
