import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { clientFor, receiverFor, request, shortOutcome, untilNoSockets } from '../support/http-client.ts'
import { answering, response } from '../support/receivers.ts'
import { until } from '../support/until.ts'

test('no more sockets to one origin than allowed; the others wait in line and are served in order', async (t) => {
  let most = 0
  const receiver = await receiverFor(t, {
    onRequest: (socket) => {
      most = Math.max(most, receiver.openConnections())
      setTimeout(() => socket.write(response(200)), 5)
    },
  })
  const http = clientFor(t, { maxConnectionsPerOrigin: 3 })
  const all = await Promise.all(Array.from({ length: 30 }, (_, number) => http.post(request(`${receiver.url}?${number}`))))
  assert.ok(all.every((attempted) => shortOutcome(attempted) === 'status:200'))
  assert.deepEqual([most, receiver.accepted()], [3, 3])
  const order = receiver.requests.map(({ target }) => Number(target.split('?')[1]))
  assert.ok(order.every((number, place) => Math.abs(number - place) < 3), String(order))
})

test('waiting in line is under the deadline, and who left it is never sent', async (t) => {
  const receiver = await receiverFor(t, { onRequest: (socket) => void setTimeout(() => socket.write(response(200)), 400) })
  const http = clientFor(t, { maxConnectionsPerOrigin: 1 })
  const first = http.post(request(receiver.url))
  const second = await http.post(request(receiver.url, { deadlineMs: 100 }))
  assert.equal(shortOutcome(second), 'timeout/before_send')
  assert.equal(shortOutcome(await first), 'status:200')
  assert.equal(shortOutcome(await http.post(request(receiver.url))), 'status:200')
  assert.equal(receiver.requests.length, 2)
})

test('a connection that fails makes room for who waits', async (t) => {
  const receiver = await receiverFor(t, {
    onRequest: (socket, { number }) => void (number % 2 === 1 ? socket.resetAndDestroy() : socket.write(response(200))),
  })
  const http = clientFor(t, { maxConnectionsPerOrigin: 1 })
  const all = await Promise.all(Array.from({ length: 6 }, () => http.post(request(receiver.url))))
  // A reset of a used socket is redone, so each even number is followed by a redone one.
  assert.equal(shortOutcome(all[0]!), 'reset/sent')
  assert.ok(all.slice(1).every((attempted) => shortOutcome(attempted) === 'status:200'))
})

test('one origin that hangs takes nothing from another', async (t) => {
  const hanging = await receiverFor(t, { onRequest: () => {} })
  const quick = await receiverFor(t)
  const http = clientFor(t, { maxConnectionsPerOrigin: 2 })
  const stuck = Array.from({ length: 20 }, () => http.post(request(hanging.url, { deadlineMs: 500 })))
  const attempted = await http.post(request(quick.url))
  assert.equal(shortOutcome(attempted), 'status:200')
  assert.equal(hanging.openConnections() <= 2, true)
  await Promise.all(stuck)
})

test('idle sockets close after the keep-alive time and their origins are forgotten', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t, { keepAliveTimeoutMs: 50 })
  await http.post(request(receiver.url))
  assert.deepEqual(http.stats(), { sockets: 1, origins: 1 })
  await untilNoSockets(http)
  assert.deepEqual(http.stats(), { sockets: 0, origins: 0 })
})

test('a server cannot make idle sockets live longer than the maximum', async (t) => {
  const receiver = await receiverFor(t, answering(response(200, { headers: ['Keep-Alive: timeout=600'] })))
  const http = clientFor(t, { keepAliveMaxTimeoutMs: 50 })
  await http.post(request(receiver.url))
  await untilNoSockets(http)
})

test('a socket past its age is not used again', async (t) => {
  const receiver = await receiverFor(t, { onRequest: (socket) => void setTimeout(() => socket.write(response(200)), 30) })
  const http = clientFor(t, { socketMaxAgeMs: 20 })
  for (let number = 0; number < 3; number += 1) await http.post(request(receiver.url))
  assert.equal(receiver.accepted(), 3)
})

test('many origins: the idle ones beyond the bound are closed, the least recently used first', async (t) => {
  // All of 127.0.0.0/8 leads to this machine: each address is an origin.
  let open = 0
  const server = createServer({ noDelay: true }, (socket) => {
    open += 1
    socket.on('data', () => socket.write(response(200))).on('error', () => {}).once('close', () => { open -= 1 })
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const http = clientFor(t, { maxOrigins: 20, keepAliveTimeoutMs: 30_000 })
  const post = (number: number) => http.post(request(`http://127.0.1.${number}:${port}/`))
  for (let number = 1; number <= 100; number += 1) {
    assert.equal(shortOutcome(await post(number)), 'status:200')
    assert.equal((await post(1)).reusedSocket, true, 'the one used all the time is kept')
  }
  assert.equal(http.stats().origins, 20)
  await until(() => open === 20 && http.stats().sockets === 20, { message: () => `20 sockets to stay open; open: ${open}` })
  assert.equal((await post(50)).reusedSocket, false)
})

test('all who want one name share one look-up', async (t) => {
  const receiver = await receiverFor(t)
  let asked = 0
  const http = clientFor(t, {
    lookup: (_name, _options, callback) => {
      asked += 1
      setTimeout(() => callback(null, [{ address: '127.0.0.1', family: 4 }]), 20)
    },
  })
  const all = await Promise.all(Array.from({ length: 10 }, () => http.post(request(`http://hooks.example:${receiver.port}/`))))
  assert.ok(all.every((attempted) => shortOutcome(attempted) === 'status:200'))
  assert.deepEqual([asked, receiver.accepted()], [1, 10])
})

test('the address check sees every address with its port, after DNS; refused ones are not dialled', async (t) => {
  const receiver = await receiverFor(t)
  const seen: string[] = []
  const http = clientFor(t, {
    lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.9', family: 4 }, { address: '127.0.0.1', family: 4 }]),
    checkAddress: (address, port) => {
      seen.push(`${address}:${port}`)
      return address === '127.0.0.1'
    },
  })
  assert.equal(shortOutcome(await http.post(request(`http://hooks.example:${receiver.port}/`))), 'status:200')
  assert.deepEqual(seen, [`127.0.0.9:${receiver.port}`, `127.0.0.1:${receiver.port}`, `127.0.0.1:${receiver.port}`])
})

test('a name or a literal with no allowed address is blocked_address, and the outcome does not tell the address', async (t) => {
  const receiver = await receiverFor(t)
  const http = clientFor(t, { checkAddress: () => false })
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433']) {
    const attempted = await http.post(request(`http://${host}:${receiver.port}/`))
    assert.equal(shortOutcome(attempted), 'blocked_address/before_send', host)
    assert.doesNotMatch(JSON.stringify(attempted), /127\.0|::1/)
  }
  assert.equal(receiver.accepted(), 0)
  await untilNoSockets(http)
  assert.equal(http.stats().origins, 0)
})
