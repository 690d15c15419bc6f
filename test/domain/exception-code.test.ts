import assert from 'node:assert/strict'
import { promises as dns } from 'node:dns'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { errors } from 'undici'
import { errorFromException } from '../../shared/domain/classify.ts'
import { systemCodes } from '../../shared/domain/error-codes.ts'
import { exceptionCode } from '../../shared/domain/exception-code.ts'

const coded = (code: string, more: object = {}) => Object.assign(new Error(`${code} at https://hook.example/?token=s3cret`), { code, ...more })
const codeOf = (thrown: unknown) => exceptionCode(thrown).code

test('every listed system code is recognised, each under one code only', () => {
  const seen = new Set<string>()
  for (const [code, names] of Object.entries(systemCodes)) {
    for (const name of names) {
      assert.ok(!seen.has(name), `${name} is listed twice`)
      seen.add(name)
      if (/^[A-Z_0-9]+$/.test(name)) assert.equal(codeOf(coded(name)), code, name)
    }
  }
})

test('the codes people meet, written by hand', () => {
  const rows: [string, object, string][] = [
    ['ECONNREFUSED', { syscall: 'connect' }, 'connect_refused'],
    ['ECONNREFUSED', { syscall: 'queryA' }, 'dns_failed'],
    ['ECONNREFUSED', { syscall: 'queryAaaa' }, 'dns_failed'],
    ['ENOTFOUND', { syscall: 'getaddrinfo' }, 'dns_not_found'],
    ['ENODATA', { syscall: 'queryA' }, 'dns_not_found'],
    ['EAI_AGAIN', { syscall: 'getaddrinfo' }, 'dns_failed'],
    ['ESERVFAIL', { syscall: 'queryA' }, 'dns_failed'],
    ['ETIMEOUT', { syscall: 'queryA' }, 'dns_failed'],
    ['EOF', { syscall: 'queryA' }, 'dns_failed'],
    ['EMFILE', { syscall: 'getaddrinfo' }, 'no_file_descriptors'],
    ['ENOMEM', { syscall: 'queryA' }, 'no_local_resources'],
    ['ETIMEDOUT', { syscall: 'connect' }, 'connect_timeout'],
    ['ETIMEDOUT', { syscall: 'read' }, 'timeout'],
    ['EHOSTUNREACH', { syscall: 'connect' }, 'connect_unreachable'],
    ['EADDRNOTAVAIL', { syscall: 'connect', address: '::1' }, 'connect_unreachable'],
    ['EADDRNOTAVAIL', { syscall: 'connect', address: '192.0.2.1' }, 'no_local_resources'],
    ['ECONNRESET', { syscall: 'read' }, 'reset'],
    ['EPIPE', { syscall: 'write' }, 'reset'],
    ['CERT_HAS_EXPIRED', {}, 'tls_certificate'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', {}, 'tls_certificate'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', {}, 'tls_certificate'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', {}, 'tls_protocol'],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', {}, 'tls_protocol'],
    ['EPROTO', { syscall: 'write' }, 'tls_protocol'],
    ['HPE_INVALID_CONSTANT', {}, 'protocol'],
    ['EGRESS_BLOCKED', {}, 'blocked_address'],
    ['ERR_INVALID_URL', {}, 'invalid_url'],
    ['EMFILE', { syscall: 'connect' }, 'no_file_descriptors'],
    ['ESOMETHING', {}, 'unknown'],
  ]
  for (const [code, more, expected] of rows) assert.equal(codeOf(coded(code, more)), expected, `${code} ${JSON.stringify(more)}`)
})

test('errors of undici itself', () => {
  const rows: [Error, string][] = [
    [new errors.ConnectTimeoutError(), 'connect_timeout'],
    [new errors.HeadersTimeoutError(), 'timeout'],
    [new errors.BodyTimeoutError(), 'timeout'],
    [new errors.HeadersOverflowError(), 'protocol'],
    [new errors.SocketError('other side closed'), 'reset'],
    [new errors.SocketError('bad upgrade'), 'protocol'],
    [new errors.SocketError('bad response'), 'protocol'],
    [new errors.InformationalError('reset'), 'reset'],
    [new errors.ResponseContentLengthMismatchError(), 'protocol'],
    [new errors.ClientDestroyedError(), 'shutting_down'],
    [new errors.ClientClosedError(), 'shutting_down'],
    [new errors.RequestAbortedError(), 'shutting_down'],
    [new errors.InvalidArgumentError('invalid header'), 'internal'],
    [new errors.RequestContentLengthMismatchError(), 'internal'],
  ]
  for (const [error, expected] of rows) assert.equal(codeOf(error), expected, error.message)
})

test('names count where there is no code of text', () => {
  assert.equal(codeOf(new DOMException('too late', 'TimeoutError')), 'timeout', 'its code is the number 23')
  assert.equal(codeOf(AbortSignal.abort().reason), 'shutting_down')
  assert.equal(codeOf(Object.assign(new Error('bad'), { name: 'HTTPParserError', code: undefined })), 'protocol')
  assert.equal(codeOf(new TypeError('x is not a function')), 'internal')
  assert.equal(codeOf(new RangeError('out of range')), 'internal')
})

test('a wrapper gives way to its cause, a definite code does not', () => {
  assert.equal(codeOf(new TypeError('fetch failed', { cause: coded('ENOTFOUND') })), 'dns_not_found')
  assert.equal(codeOf(new Error('outer', { cause: new Error('middle', { cause: coded('CERT_HAS_EXPIRED') }) })), 'tls_certificate')
  assert.equal(codeOf(Object.assign(new errors.SocketError('closed'), { cause: coded('CERT_HAS_EXPIRED') })), 'tls_certificate')
  assert.equal(codeOf(Object.assign(new errors.SocketError('closed'), { cause: new Error('nothing') })), 'reset')
  assert.equal(codeOf(coded('UND_ERR_HEADERS_TIMEOUT', { cause: coded('ECONNRESET') })), 'timeout')
})

test('of several tries of one connection our own trouble counts first, then what keeps the delivery alive', () => {
  const of = (...codes: string[]) => codeOf(Object.assign(new AggregateError(codes.map((code) => coded(code, { syscall: 'connect' }))), { code: codes[0] }))
  assert.equal(of('ECONNREFUSED', 'ECONNREFUSED'), 'connect_refused')
  assert.equal(of('EGRESS_BLOCKED', 'ETIMEDOUT'), 'connect_timeout')
  assert.equal(of('EGRESS_BLOCKED', 'EGRESS_BLOCKED'), 'blocked_address')
  assert.equal(of('ECONNREFUSED', 'EMFILE'), 'no_file_descriptors')
  assert.equal(of('ESOMETHING', 'EHOSTUNREACH'), 'connect_unreachable')
  assert.equal(of('ESOMETHING'), 'unknown')
  assert.equal(codeOf(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })), 'connect_refused')
  const v6 = Object.assign(coded('EADDRNOTAVAIL'), { address: '::1', syscall: 'connect' })
  assert.equal(codeOf(new AggregateError([coded('ECONNREFUSED', { syscall: 'connect' }), v6])), 'connect_refused')
})

test('causes that go in a circle, and things that are no errors, end as unknown', () => {
  const circle: { cause?: unknown; errors?: unknown } = {}
  circle.cause = circle
  assert.equal(codeOf(circle), 'unknown')
  circle.errors = [circle, circle]
  assert.equal(codeOf(circle), 'unknown')
  for (const thrown of [undefined, null, 'text', 7, Symbol('x'), [], () => 1]) assert.equal(codeOf(thrown), 'unknown')
  fc.assert(fc.property(fc.anything(), (thrown) => typeof errorFromException(thrown, true).detail === 'string'))
})

test('the detail repeats no URL, name, address or secret', () => {
  const thrown = [
    coded('ENOTFOUND', { hostname: 'hook.example' }), coded('ESOMETHING'), coded('https://hook.example/?token=s3cret'), coded('E S3CRET s3cret'),
    Object.assign(new Error('s3cret'), { name: 's3cret https://hook.example' }), new TypeError('https://hook.example/?token=s3cret'), 'https://hook.example/?token=s3cret',
  ]
  for (const error of thrown) assert.doesNotMatch(errorFromException(error, false).detail, /hook\.example|s3cret|https/)
  assert.equal(errorFromException(coded('ESOMETHING'), false).detail, 'an error that is not in the table (ESOMETHING)')
})

test('a closed port and a name without an address, as Node reports them', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  const connecting = (host: string) => new Promise((resolve) => connect({ port, host }).once('error', resolve))
  assert.equal(codeOf(await connecting('127.0.0.1')), 'connect_refused')
  const resolver = new dns.Resolver({ timeout: 200, tries: 1 })
  resolver.setServers([`127.0.0.1:${port}`])
  const error = await resolver.resolve4('no-such.invalid').catch((error: unknown) => error)
  assert.equal(codeOf(error), 'dns_failed')
})
