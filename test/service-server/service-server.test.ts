import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { createMetrics } from '../../shared/metrics/registry.ts'
import { createServiceServer, type ServiceServer, type ServiceServerOptions } from '../../shared/service-server/service-server.ts'

const start = async (t: TestContext, options: Partial<ServiceServerOptions> = {}): Promise<{ server: ServiceServer; get: (path: string, init?: RequestInit) => Promise<Response> }> => {
  const server = await createServiceServer({
    port: 0, host: '127.0.0.1', registry: new Registry(), readiness: () => [], liveness: () => null, ...options,
  })
  t.after(() => server.close())
  return { server, get: (path, init) => fetch(`http://127.0.0.1:${server.port}${path}`, init) }
}

test('readiness says what is waited for, and turns when that is there', async (t) => {
  let waitingFor: readonly string[] = ['Kafka', 'the subscriptions table']
  const { get } = await start(t, { readiness: () => waitingFor })
  const before = await get('/readyz')
  assert.equal(before.status, 503)
  assert.deepEqual(await before.json(), { ready: false, waitingFor: ['Kafka', 'the subscriptions table'] })
  waitingFor = []
  const after = await get('/readyz?verbose')
  assert.equal(after.status, 200)
  assert.deepEqual(await after.json(), { ready: true, waitingFor: [] })
})

test('liveness fails with its reason only where there is one', async (t) => {
  let reason: string | null = null
  const { get } = await start(t, { liveness: () => reason })
  assert.deepEqual(await (await get('/livez')).json(), { alive: true, reason: null })
  reason = 'the consumer died'
  const dead = await get('/livez')
  assert.equal(dead.status, 503)
  assert.deepEqual(await dead.json(), { alive: false, reason: 'the consumer died' })
})

test('a check that throws: not ready, and no reason to restart', async (t) => {
  const broken = (): never => { throw new Error('broken') }
  const { get } = await start(t, { readiness: broken, liveness: broken })
  const ready = await get('/readyz')
  assert.equal(ready.status, 503)
  assert.deepEqual(await ready.json(), { ready: false, waitingFor: ['the check itself failed: broken'] })
  assert.equal((await get('/livez')).status, 200)
})

test('metrics come as Prometheus reads them; a collector that throws is an error, not an end', async (t) => {
  const metrics = createMetrics({ version: '1', service: 'router' })
  const { get } = await start(t, { registry: metrics.registry })
  const response = await get('/metrics')
  assert.match(response.headers.get('content-type')!, /^text\/plain; version=0\.0\.4/)
  assert.match(await response.text(), /posthouse_build_info/)
  metrics.gauge({ name: 'posthouse_broken', help: 'Cannot be collected.', collect: () => { throw new Error('no value') } })
  assert.equal((await get('/metrics')).status, 500)
  assert.equal((await get('/livez')).status, 200)
})

test('other paths and methods are answered in JSON; other paths go to the handler where there is one', async (t) => {
  const { get } = await start(t)
  const missing = await get('/nothing')
  assert.equal(missing.status, 404)
  assert.equal((await missing.json() as { error: { code: string } }).error.code, 'not_found')
  const posted = await get('/readyz', { method: 'POST' })
  assert.equal(posted.status, 405)
  assert.equal(posted.headers.get('allow'), 'GET, HEAD')
  const withHandler = await start(t, { handle: (_, response) => void response.end('handled') })
  assert.equal(await (await withHandler.get('/api')).text(), 'handled')
  assert.equal((await withHandler.get('/livez')).status, 200)
})

test('a port that is taken is said, with what to do', async (t) => {
  const { server } = await start(t)
  await assert.rejects(
    createServiceServer({ port: server.port, host: '127.0.0.1', registry: new Registry(), readiness: () => [], liveness: () => null }),
    /could not be opened \(EADDRINUSE\): another process has it: set POSTHOUSE_HTTP_PORT/)
})

test('closing is one thing however often it is asked for, and is not held up by a silent connection', { timeout: 10_000 }, async (t) => {
  const { server, get } = await start(t)
  await get('/livez')
  const socket = connect(server.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  // Half a request: neither idle nor ever answered.
  await new Promise<void>((resolve) => { socket.write('GET /livez HT', () => resolve()) })
  const first = server.close()
  assert.equal(server.close(), first)
  await first
  await assert.rejects(get('/livez'))
})
