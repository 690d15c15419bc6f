/**
 * A receiver as a process of its own, for tests to kill and to stop: `crash-receiver.ts <connection as JSON> <table> <lock> <mode>`.
 * It writes its port, and a line when work has been done (a row in `work`, committed). In mode `hang` the handler then never ends, in
 * `held` it ends on SIGUSR2, in `slow` within a second, in `quick` at once. In mode `together` work and end are one transaction, which
 * `hang-together` leaves open.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { dedupe } from '../../receiver/dedupe.ts'
import type { Duration } from '../../receiver/duration.ts'
import { nodeHandler } from '../../receiver/node-handler.ts'
import { postgresStore } from '../../receiver/postgres-store.ts'
import type { Claim } from '../../receiver/store.ts'

const [connection = '', table = '', lock = '', mode = ''] = process.argv.slice(2)
const pool = new pg.Pool({ ...(JSON.parse(connection) as pg.PoolConfig), max: 10 })
const dedupeByTable = dedupe(postgresStore(pool, { table }), { ttl: '1h', lock: lock as Duration })
const body = `by ${process.pid}`
const insert = 'INSERT INTO work (id, pid, token) VALUES ($1, $2, $3)'

async function workTogether(claim: Claim): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query(insert, [claim.key, process.pid, claim.token])
    const isOurs = await postgresStore(client, { table }).finish(claim, { status: 200, contentType: 'text/plain; charset=utf-8', body: Buffer.from(body) })
    process.stdout.write('worked\n')
    if (mode === 'hang-together') await new Promise(() => undefined)
    await client.query(isOurs ? 'COMMIT' : 'ROLLBACK')
    if (!isOurs) throw new Error('taken over')
  } finally {
    client.release()
  }
}

const handler = nodeHandler({ secrets: 'whsec_test', dedupe: dedupeByTable, onError: (error) => process.stderr.write(`${error.stack}\n`) }, async ({ claim }) => {
  if (claim === null) throw new Error('there is no claim')
  if (mode.endsWith('together')) {
    await workTogether(claim)
  } else {
    await pool.query(insert, [claim.key, process.pid, claim.token])
    process.stdout.write('worked\n')
  }
  if (mode === 'hang') await new Promise(() => undefined)
  if (mode === 'held') await once(process, 'SIGUSR2')
  if (mode === 'slow') await delay(claim.token % 1_000)
  return { body }
})

const server = createServer((request, response) => void handler(request, response))
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`))
