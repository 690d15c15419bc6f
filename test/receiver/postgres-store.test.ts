import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTableSql, postgresStore, type PostgresStore } from '../../receiver/postgres-store.ts'
import { openPool, startPostgres } from '../support/postgres.ts'
import { assertFollowsModel } from './store-model.ts'
import { storm } from './storm.ts'

const postgres = await startPostgres()
const skip = typeof postgres === 'string' ? postgres : false
// Without a server no test runs that would use it.
const { pool, close } = openPool(typeof postgres === 'string' ? {} : { ...postgres.connection, max: 20 })
after(async () => {
  await close()
  if (typeof postgres !== 'string') await postgres.stop()
})

let tables = 0
async function freshStore(): Promise<{ store: PostgresStore; table: string }> {
  tables += 1
  const table = `claims_${tables}`
  await pool.query(createTableSql(table))
  return { store: postgresStore(pool, { table }), table }
}

const claim = (key: string, { fingerprint = 'x', lockMs = 60_000, ttlMs = 600_000 } = {}) => ({ key, fingerprint, requestId: `for ${key}`, lockMs, ttlMs })
const answer = { status: 201, contentType: 'text/plain', body: Buffer.from('done') }

test('the PostgreSQL store answers as it is described, whatever the order of calls', { skip }, async () => {
  const { store, table } = await freshStore()
  await assertFollowsModel(async () => {
    await pool.query(`TRUNCATE ${table}`)
    const wait = async (ms: number) => {
      await pool.query(`UPDATE ${table} SET lock_until = lock_until - $1 * interval '1 ms', expires_at = expires_at - $1 * interval '1 ms'`, [ms])
    }
    return { store, wait }
  }, { numRuns: 100 })
})

test('1,000 concurrent repeats of 100 ids: never two at once, none after a success', { skip }, async (t) => {
  const { store } = await freshStore()
  t.diagnostic(JSON.stringify(await storm(store, { ids: 100, repeats: 10 })))
})

test('of many that see the same abandoned claim one takes it over', { skip }, async () => {
  const { store, table } = await freshStore()
  for (let round = 0; round < 20; round += 1) {
    const key = `key ${round}`
    const crashed = await store.claim(claim(key))
    assert.ok(crashed.state === 'claimed')
    await pool.query(`UPDATE ${table} SET lock_until = now() - interval '1 s' WHERE key = $1`, [key])
    const results = await Promise.all(Array.from({ length: 20 }, () => store.claim(claim(key))))
    const claimed = results.flatMap((result) => (result.state === 'claimed' ? [result.token] : []))
    assert.equal(claimed.length, 1)
    assert.ok(claimed[0]! > crashed.token)
    assert.equal(results.filter(({ state }) => state === 'running').length, 19)
    assert.equal(await store.finish({ key, token: crashed.token, ttlMs: 1_000 }, answer), false, 'too late')
    assert.equal(await store.release({ key, token: crashed.token, ttlMs: 1_000 }), false)
    assert.equal(await store.finish({ key, token: claimed[0]!, ttlMs: 1_000 }, answer), true)
  }
})

test('of a holder that finishes late and one that takes over, one wins', { skip }, async () => {
  const { store, table } = await freshStore()
  const wins = { holder: 0, other: 0 }
  for (let round = 0; round < 100; round += 1) {
    const key = `key ${round}`
    const holder = await store.claim(claim(key))
    assert.ok(holder.state === 'claimed')
    await pool.query(`UPDATE ${table} SET lock_until = now() - interval '1 s' WHERE key = $1`, [key])
    const finish = () => store.finish({ key, token: holder.token, ttlMs: 60_000 }, answer)
    const [isFinished, takeOver] = round % 2 === 0
      ? await Promise.all([finish(), store.claim(claim(key))])
      : await Promise.all([store.claim(claim(key)), finish()]).then(([claimed, finished]) => [finished, claimed] as const)
    assert.equal(takeOver.state, isFinished ? 'finished' : 'claimed')
    wins[isFinished ? 'holder' : 'other'] += 1
  }
  assert.ok(wins.holder > 0 && wins.other > 0, `both orders happened: ${JSON.stringify(wins)}`)
})

test('work and its end in one transaction: an overtaken holder leaves nothing behind', { skip }, async () => {
  const { store, table } = await freshStore()
  await pool.query('CREATE TABLE work (id text, by bigint)')
  const doWork = async (token: number) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await client.query('INSERT INTO work VALUES ($1, $2)', ['a', token])
      const isOurs = await postgresStore(client, { table }).finish({ key: 'a', token, ttlMs: 60_000 }, answer)
      await client.query(isOurs ? 'COMMIT' : 'ROLLBACK')
      return isOurs
    } finally {
      client.release()
    }
  }
  const slow = await store.claim(claim('a'))
  assert.ok(slow.state === 'claimed')
  await pool.query(`UPDATE ${table} SET lock_until = now() - interval '1 s'`)
  const next = await store.claim(claim('a'))
  assert.ok(next.state === 'claimed')
  assert.equal(await doWork(slow.token), false)
  assert.equal(await doWork(next.token), true)
  assert.equal(await store.finish({ key: 'a', token: next.token, ttlMs: 60_000 }, answer), true, 'telling it again is no conflict')
  assert.deepEqual((await pool.query('SELECT by::float8 FROM work')).rows, [{ by: next.token }])
})

test('what has expired is as good as gone, and is deleted in steps', { skip }, async () => {
  const { store, table } = await freshStore()
  for (let n = 0; n < 25; n += 1) await store.claim(claim(`key ${n}`))
  await pool.query(`UPDATE ${table} SET expires_at = now() - interval '1 s' WHERE key <> 'key 0'`)
  assert.equal((await store.claim(claim('key 1', { fingerprint: 'another' }))).state, 'claimed')
  const deleted = [await store.deleteExpired(10), await store.deleteExpired(10), await store.deleteExpired(), await store.deleteExpired()]
  assert.deepEqual(deleted, [10, 10, 3, 0])
  assert.equal((await store.claim(claim('key 0'))).state, 'running')
})

test('a claim in a transaction that sees an old snapshot is an error, and not a second run', { skip }, async () => {
  const { store, table } = await freshStore()
  const client = await pool.connect()
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query(`SELECT FROM ${table}`)
    assert.equal((await store.claim(claim('a'))).state, 'claimed')
    await assert.rejects(postgresStore(client, { table }).claim(claim('a')))
    await client.query('ROLLBACK')
  } finally {
    client.release()
  }
})

test("the table's SQL may be run again; other names, with a schema too", { skip }, async () => {
  await pool.query(createTableSql())
  await pool.query(createTableSql())
  assert.equal((await postgresStore(pool).claim(claim('a'))).state, 'claimed')
  await pool.query('CREATE SCHEMA hooks')
  await pool.query(createTableSql('hooks.claims'))
  assert.equal((await postgresStore(pool, { table: 'hooks.claims' }).claim(claim('a'))).state, 'claimed')
})

test('a name that would be SQL is refused', () => {
  for (const table of ['', 'a b', 'a;', 'A', 'a.b.c', '"a"', '1a', 'a-b', 'x'.repeat(64)]) {
    assert.throws(() => createTableSql(table), TypeError)
    assert.throws(() => postgresStore(pool, { table }), TypeError)
  }
})
