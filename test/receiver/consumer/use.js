// Plain JavaScript of somebody who has installed the package and nothing else. Ends with `ok` and Node's version.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { createTableSql, dedupe, fetchHandler, memoryStore, nodeHandler, postgresStore, verify } from 'posthouse-receiver'

const secrets = 'whsec_test'
const sign = (body, t = Math.floor(Date.now() / 1000)) => `t=${t},v1=${createHmac('sha256', secrets).update(`${t}.${body}`).digest('hex')}`
const post = (body, id) => ({ method: 'POST', body, headers: { 'x-webhook-delivery': id, 'x-webhook-signature': sign(body) } })

const { body, headers } = post('{"n":1}', 'del_1')
assert.equal(verify({ headers, body }, { secrets }).ok, true)
assert.equal(verify({ headers, body: `${body} ` }, { secrets }).reason, 'signature-mismatch')

let runs = 0
const options = { secrets, dedupe: dedupe(memoryStore(), { ttl: '60d', lock: '60s' }) }
const handle = (webhook) => {
  runs += 1
  return { status: 201, contentType: 'application/json', body: JSON.stringify({ ...webhook.json(), runs }) }
}

const server = createServer(nodeHandler(options, handle)).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}/`
for (const replayed of [null, 'true']) {
  const response = await fetch(url, post('{"n":1}', 'del_1'))
  assert.deepEqual([response.status, await response.json()], [201, { n: 1, runs: 1 }])
  assert.equal(response.headers.get('idempotent-replayed'), replayed)
}
assert.equal((await fetch(url, post('{"n":2}', 'del_1'))).status, 422)
assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401)
server.close()
server.closeAllConnections()

const handler = fetchHandler(options, handle)
const response = await handler(new Request('http://localhost/', post('{"n":1}', 'del_1')))
assert.deepEqual([response.status, response.headers.get('idempotent-replayed')], [201, 'true'])
assert.equal((await handler(new Request('http://localhost/', post('{"n":3}', 'del_3')))).status, 201)
assert.equal(runs, 2)

const asked = []
const store = postgresStore({ query: async (text, params) => { asked.push([text, params]); return { rows: [{ state: 'claimed', token: '7' }] } } })
assert.deepEqual(await store.claim({ key: 'a', fingerprint: 'x', requestId: 'r', lockMs: 1, ttlMs: 2 }), { state: 'claimed', token: 7 })
assert.match(asked[0][0], /webhook_claims/)
assert.match(createTableSql(), /CREATE TABLE IF NOT EXISTS webhook_claims/)

assert.equal(createRequire(import.meta.url)('posthouse-receiver').verify, verify, 'CommonJS gets the same')
process.stdout.write(`ok ${process.version}\n`)
