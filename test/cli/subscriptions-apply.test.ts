import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kafkaForTests, withAdmin } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { installationFor } from './run-cli.ts'

const { skip } = kafkaForTests()

type Row = { action: string; result: string; id: string | null; tenant: string | null; host: string; changes: string[]; secret?: string }

test('apply shows the difference, makes it with --yes, finds nothing the second time, and prunes when told', { skip }, async (t) => {
  const { expect } = await installationFor(t, 'cli-apply', { provisioned: true })
  const apply = ['subscriptions', 'apply', '-f', '-', '-o', 'json']
  const first = JSON.stringify({ subscriptions: [
    { url: 'https://a.example/hook', eventTypes: ['order.*'], tenant: 'acme' }, { url: 'https://b.example/hook', eventTypes: ['*'] },
  ] })

  const preview = await expect(2, apply, { input: first })
  assert.deepEqual((preview.json() as Row[]).map(({ action, result, host }) => [action, result, host]), [
    ['create', 'planned', 'a.example'], ['create', 'planned', 'b.example'],
  ])
  assert.equal(preview.error().code, 'confirmation_needed')
  const made = (await expect(0, [...apply, '--yes'], { input: first })).json() as Row[]
  assert.ok(made.every(({ result, id, secret }) => result === 'done' && id?.startsWith('sub_') && secret?.startsWith('whsec_')))
  assert.deepEqual((await expect(0, apply, { input: first })).json(), [], 'nothing to do needs no --yes')

  const second = JSON.stringify([{ url: 'https://a.example/hook', eventTypes: ['order.*', 'refund.*'], tenant: 'acme' }])
  const pruned = await expect(0, [...apply, '--prune', '--yes'], { input: second })
  assert.deepEqual((pruned.json() as Row[]).map(({ action, result, id, changes }) => [action, result, id, changes]), [
    ['update', 'done', made[0]!.id, ['event types +refund.*']], ['delete', 'done', made[1]!.id, []],
  ])
  assert.doesNotMatch(pruned.stdout, /whsec_/)
  const left = (await expect(0, ['subscriptions', 'list', '-o', 'json'])).json() as { id: string; eventTypes: string[] }[]
  assert.deepEqual(left.map(({ id, eventTypes }) => [id, eventTypes]), [[made[0]!.id, ['order.*', 'refund.*']]])
})

test('an apply that is cut off shows what it made, with the secrets that are shown nowhere else', { skip }, async (t) => {
  const { names, start } = await installationFor(t, 'cli-apply-cut', { provisioned: true })
  const wanted = Array.from({ length: 25 }, (_, index) => ({ url: `https://${index}.example/hook`, eventTypes: ['*'] }))
  const { child, ended } = start(['subscriptions', 'apply', '-f', '-', '-o', 'json', '--yes'], { input: JSON.stringify(wanted) })
  // Twenty are written at a time, and each write waits a second for its effect: this one is in the second lot.
  await withAdmin((admin) => until(
    async () => (await admin.fetchTopicOffsets(names.subscriptions)).some(({ high }) => Number(high) > 20), { deadlineMs: 60_000 },
  ))
  child.kill('SIGINT')
  const result = await ended
  assert.equal(result.code, 130, result.stderr)
  const rows = result.json() as Row[]
  assert.equal(rows.length, 20)
  assert.ok(rows.every(({ result, id, secret }) => result === 'done' && id?.startsWith('sub_') && secret?.startsWith('whsec_')))
})
