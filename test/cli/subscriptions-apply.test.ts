import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kafkaForTests } from '../support/kafka.ts'
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
