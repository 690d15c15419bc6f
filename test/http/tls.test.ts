import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { canMakeCertificates, makeCertificates } from '../support/certificates.ts'
import { clientFor, receiverFor, request, shortOutcome, untilNoSockets } from '../support/http-client.ts'
import { response } from '../support/receivers.ts'

suite('certificates', { skip: !canMakeCertificates && 'no openssl on this machine' }, () => {
  const certificates = canMakeCertificates ? makeCertificates() : null!

  test('one of a trusted authority: delivered, and the socket is used again', async (t) => {
    const receiver = await receiverFor(t, { tls: certificates.valid })
    const http = clientFor(t, { ca: certificates.authority })
    assert.equal(shortOutcome(await http.post(request(receiver.url))), 'status:200')
    const again = await http.post(request(receiver.url))
    assert.deepEqual([shortOutcome(again), again.reusedSocket, again.redone], ['status:200', true, false])
  })

  for (const [name, systemCode] of [
    ['expired', 'CERT_HAS_EXPIRED'], ['wrongName', 'ERR_TLS_CERT_ALTNAME_INVALID'], ['selfSigned', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ] as const) {
    test(`${name}: tls_certificate, and no byte of the request is sent`, async (t) => {
      const receiver = await receiverFor(t, { tls: certificates[name] })
      const http = clientFor(t, { ca: certificates.authority })
      const attempted = await http.post(request(receiver.url))
      assert.equal(shortOutcome(attempted), 'tls_certificate/before_send')
      assert.ok(JSON.stringify(attempted.outcome).includes(systemCode), JSON.stringify(attempted.outcome))
      assert.equal(receiver.requests.length, 0)
      await untilNoSockets(http)
    })
  }

  test('an authority that was not named', async (t) => {
    const receiver = await receiverFor(t, { tls: certificates.valid })
    assert.equal(shortOutcome(await clientFor(t).post(request(receiver.url))), 'tls_certificate/before_send')
  })

  test('no environment variable switches verification off', async (t) => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    t.after(() => { delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'] })
    const receiver = await receiverFor(t, { tls: certificates.selfSigned })
    assert.equal(shortOutcome(await clientFor(t).post(request(receiver.url))), 'tls_certificate/before_send')
  })

  test('a literal address is checked against the certificate as well', async (t) => {
    const receiver = await receiverFor(t, { tls: certificates.valid })
    const http = clientFor(t, { ca: certificates.authority })
    assert.equal(shortOutcome(await http.post(request(receiver.url.replace('localhost', '127.0.0.1')))), 'tls_certificate/before_send')
  })

  test('sessions are resumed within an origin only: never under the name of another', async (t) => {
    const receiver = await receiverFor(t, { tls: certificates.valid, onRequest: (socket) => void socket.end(response(200)) })
    const http = clientFor(t, {
      ca: certificates.authority,
      lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    })
    for (let number = 0; number < 3; number += 1) assert.equal(shortOutcome(await http.post(request(receiver.url))), 'status:200')
    const other = await http.post(request(receiver.url.replace('localhost', 'other.example')))
    assert.equal(shortOutcome(other), 'tls_certificate/before_send')
  })

  test('a plain HTTP port asked for TLS is tls_protocol', async (t) => {
    const receiver = await receiverFor(t, { onFirstBytes: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') })
    const http = clientFor(t)
    assert.equal(shortOutcome(await http.post(request(receiver.url.replace('http:', 'https:')))), 'tls_protocol/before_send')
  })

  test('a connection closed during the handshake is reset, before sending', async (t) => {
    const receiver = await receiverFor(t, { onFirstBytes: (socket) => void socket.destroy() })
    const http = clientFor(t)
    assert.equal(shortOutcome(await http.post(request(receiver.url.replace('http:', 'https:')))), 'reset/before_send')
  })

  test('100 requests at once over 10 sockets', async (t) => {
    const receiver = await receiverFor(t, { tls: certificates.valid })
    const http = clientFor(t, { ca: certificates.authority, maxConnectionsPerOrigin: 10 })
    const all = await Promise.all(Array.from({ length: 100 }, () => http.post(request(receiver.url))))
    assert.ok(all.every((attempted) => shortOutcome(attempted) === 'status:200'))
    assert.equal(receiver.accepted(), 10)
  })
})
