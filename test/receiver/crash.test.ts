import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { Stripe } from 'stripe'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { spawnLeashed, type Leashed } from '../../deploy/dev/leash.ts'
import { createTableSql } from '../../receiver/postgres-store.ts'
import { openPool, startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const postgres = await startPostgres()
const skip = typeof postgres === 'string' ? postgres : false
const { pool, close } = openPool(typeof postgres === 'string' ? {} : { ...postgres.connection, max: 5 })
after(async () => {
  await close()
  if (typeof postgres !== 'string') await postgres.stop()
})

const { webhooks } = new Stripe('sk_test_unused')
type Mode = 'hang' | 'held' | 'slow' | 'quick' | 'together' | 'hang-together'
type Process = { readonly child: Leashed; readonly port: number; hasWorked(): boolean }

async function startProcess(t: TestContext, table: string, lock: string, mode: Mode): Promise<Process> {
  assert.ok(typeof postgres !== 'string')
  const lines: string[] = []
  const child = await spawnLeashed({
    command: process.execPath,
    args: [join(projectRoot, 'test/receiver/crash-receiver.ts'), JSON.stringify(postgres.connection), table, lock, mode],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined }, graceMs: 100, onLine: (line) => lines.push(line),
  })
  t.after(async () => {
    child.signal('SIGKILL')
    await child.ended
  })
  const port = await until(() => lines.map((line) => Number(/^port (\d+)$/.exec(line)?.[1] ?? 0)).find(Boolean) ?? 0, {
    deadlineMs: 60_000, message: () => `the receiver to listen:\n${lines.join('\n')}`,
  })
  return { child, port, hasWorked: () => lines.includes('worked') }
}

type Sent = { status: number; body: string; replayed: string | null; original: string | null; requestId: string | null; retryAfter: number }

async function send(port: number, id: string): Promise<Sent> {
  const body = `{"id":"${id}"}`
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST', body, headers: { 'x-webhook-delivery': id, 'x-webhook-signature': webhooks.generateTestHeaderString({ payload: body, secret: 'whsec_test' }) },
  })
  const { headers } = response
  return {
    status: response.status, body: await response.text(), replayed: headers.get('idempotent-replayed'), original: headers.get('original-request-id'),
    requestId: headers.get('request-id'), retryAfter: Number(headers.get('retry-after')),
  }
}

/** Repeats until it is no longer running elsewhere; answers all that came. */
async function sendUntilTaken(port: number, id: string): Promise<Sent[]> {
  const answers: Sent[] = []
  await until(async () => {
    answers.push(await send(port, id))
    return answers.at(-1)!.status !== 409
  }, { deadlineMs: 60_000, intervalMs: 50 })
  return answers
}

async function tables(name: string): Promise<string> {
  await pool.query(createTableSql(name))
  await pool.query('CREATE TABLE IF NOT EXISTS work (id text, pid int, token bigint, at timestamptz DEFAULT clock_timestamp())')
  await pool.query('TRUNCATE work')
  return name
}

type WorkRow = { pid: number; token: number; at: Date }
const work = async (): Promise<WorkRow[]> => (await pool.query<WorkRow>('SELECT pid, token::float8, at FROM work ORDER BY at')).rows

test('a process killed with -9 inside the handler: 409 until its lock is over, then another takes over', { skip }, async (t) => {
  const table = await tables('killed')
  const [first, second] = await Promise.all([startProcess(t, table, '5s', 'hang'), startProcess(t, table, '5s', 'quick')])
  const lost = send(first.port, 'del_1').catch(() => 'no answer')
  await until(() => first.hasWorked())
  const { rows: [claim] } = await pool.query<{ request_id: string; lock_until: Date }>(`SELECT request_id, lock_until FROM ${table}`)
  first.child.signal('SIGKILL')
  await first.child.ended
  assert.equal(await lost, 'no answer')

  const answers = await sendUntilTaken(second.port, 'del_1')
  const [before, taken] = [answers.slice(0, -1), answers.at(-1)!]
  assert.ok(before.length > 0, 'the lock of the dead one was held')
  for (const { original, retryAfter, body } of before) {
    assert.equal(original, claim!.request_id)
    assert.equal((JSON.parse(body) as { originalRequestId: string }).originalRequestId, claim!.request_id)
    assert.ok(retryAfter >= 1 && retryAfter <= 5)
  }
  assert.deepEqual([taken.status, taken.body, taken.replayed], [200, `by ${second.child.pid}`, null])
  const [lostWork, doneWork, ...rest] = await work()
  assert.deepEqual([lostWork?.pid, doneWork?.pid, rest], [first.child.pid, second.child.pid, []])
  assert.ok(doneWork!.token > lostWork!.token)
  assert.ok(doneWork!.at >= claim!.lock_until, 'not before the lock was over')
  t.diagnostic(JSON.stringify({ answered409: before.length, afterLockMs: doneWork!.at.getTime() - claim!.lock_until.getTime() }))

  const repeat = await send(second.port, 'del_1')
  assert.deepEqual([repeat.status, repeat.body, repeat.replayed, repeat.original], [200, taken.body, 'true', taken.requestId])
  assert.equal((await work()).length, 2)
})

test('100 ids in flight when the process is killed: each runs to its end in another, none twice there', { skip }, async (t) => {
  const table = await tables('killed_many')
  const [first, second] = await Promise.all([startProcess(t, table, '5s', 'slow'), startProcess(t, table, '5s', 'quick')])
  const ids = Array.from({ length: 100 }, (_, n) => `del_${n}`)
  const answered = ids.map((id) => send(first.port, id).catch(() => null))
  await until(async () => (await pool.query(`SELECT FROM ${table} WHERE status IS NOT NULL`)).rows.length >= 20)
  first.child.signal('SIGKILL')
  const answeredByFirst = (await Promise.all(answered)).flatMap((answer, n) => (answer?.status === 200 ? [ids[n]!] : []))

  const answers = await Promise.all(ids.flatMap((id) => [id, id, id]).map(async (id) => ({ id, answer: (await sendUntilTaken(second.port, id)).at(-1)! })))
  const bodies = Map.groupBy(answers, ({ id }) => id)
  for (const [id, ofId] of bodies) {
    assert.deepEqual(new Set(ofId.map(({ answer }) => answer.status)), new Set([200]))
    assert.equal(new Set(ofId.map(({ answer }) => answer.body)).size, 1, `${id}: one answer for all`)
    if (answeredByFirst.includes(id)) assert.equal(ofId[0]!.answer.body, `by ${first.child.pid}`, `${id}: what was done stays done`)
  }
  const rows = await work()
  const bySecond = rows.filter(({ pid }) => pid === second.child.pid).length
  const finishedByFirst = [...bodies.values()].filter((ofId) => ofId[0]!.answer.body === `by ${first.child.pid}`).length
  assert.equal(bySecond, 100 - finishedByFirst)
  t.diagnostic(JSON.stringify({ begunByFirst: rows.length - bySecond, finishedByFirst, takenOver: bySecond }))
})

test('work and end in one transaction, killed before the commit: done once', { skip }, async (t) => {
  const table = await tables('killed_together')
  const [first, second] = await Promise.all([startProcess(t, table, '3s', 'hang-together'), startProcess(t, table, '3s', 'together')])
  const lost = send(first.port, 'del_1').catch(() => 'no answer')
  await until(() => first.hasWorked())
  first.child.signal('SIGKILL')
  assert.equal(await lost, 'no answer')
  const taken = (await sendUntilTaken(second.port, 'del_1')).at(-1)!
  assert.deepEqual([taken.status, taken.body], [200, `by ${second.child.pid}`])
  assert.deepEqual((await work()).map(({ pid }) => pid), [second.child.pid])
})

test('a process that was asleep past its lock and ends late: its answer counts for nothing', { skip }, async (t) => {
  const table = await tables('asleep')
  const [first, second] = await Promise.all([startProcess(t, table, '1s', 'held'), startProcess(t, table, '60s', 'quick')])
  const late = send(first.port, 'del_1')
  await until(() => first.hasWorked())
  first.child.signal('SIGSTOP')
  try {
    const taken = (await sendUntilTaken(second.port, 'del_1')).at(-1)!
    assert.equal(taken.body, `by ${second.child.pid}`)
  } finally {
    first.child.signal('SIGCONT')
    first.child.signal('SIGUSR2')
  }
  const answer = await late
  assert.deepEqual([answer.status, answer.original, answer.retryAfter], [409, answer.requestId, 1])
  const repeat = await send(first.port, 'del_1')
  assert.deepEqual([repeat.status, repeat.body, repeat.replayed], [200, `by ${second.child.pid}`, 'true'])
})
