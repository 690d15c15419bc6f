import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { newSecret } from '../../shared/domain/ids.ts'
import { attemptHeaders } from '../../shared/domain/signed-headers.ts'
import { until } from '../support/until.ts'
import { expectCli, startCli, type RunningCli } from './run-cli.ts'

const urlOf = async ({ stderr }: RunningCli): Promise<string> => (await until(() => /http:\S+/.exec(stderr())))[0]

function post(url: string, secret: string, attempt: number): Promise<Response> {
  const body = Buffer.from('{"id":"evt_1"}')
  const flat = attemptHeaders({
    subscription: { signatureScheme: 'stripe', headers: [], secrets: [{ secret, createdAt: 0, expiresAt: null }] },
    delivery: { id: 'del_a', eventType: 'order.created', body }, attempt, sentAt: Date.now(), version: '1', replay: 0,
  })
  const headers = Array.from({ length: flat.length / 2 }, (_, index) => [flat[index * 2]!, flat[index * 2 + 1]!] as [string, string])
  return fetch(url, { method: 'POST', headers, body })
}

type Line = { eventType: string; deliveryId: string; attempt: number; signature: string; status: number }

test('listen verifies, answers the statuses in turn, and ends after --count with 0 when all signatures were right', async () => {
  const secret = newSecret()
  const cli = startCli(['listen', '--port', '0', '--secret', secret, '--status', '503,204', '--count', '3', '-o', 'jsonl'])
  const url = await urlOf(cli)
  const statuses: number[] = []
  for (const attempt of [1, 2, 3]) statuses.push((await post(url, secret, attempt)).status)
  assert.deepEqual(statuses, [503, 204, 204])
  const result = await cli.ended
  assert.equal(result.code, 0, result.stderr)
  const lines = result.lines() as Line[]
  assert.deepEqual(lines.map(({ attempt, signature, status }) => [attempt, signature, status]), [
    [1, 'verified', 503], [2, 'verified', 204], [3, 'verified', 204],
  ])
  assert.ok(lines.every(({ eventType, deliveryId }) => eventType === 'order.created' && deliveryId === 'del_a'))
  assert.ok(!(result.stdout + result.stderr).includes(secret), 'the secret is not repeated')
})

test('a signature that is not right is said, and ends with 6', async () => {
  const cli = startCli(['listen', '--port', '0', '--count', '1', '--body'], { env: { WEBHOOK_SECRET: newSecret() } })
  await post(await urlOf(cli), newSecret(), 1)
  const result = await cli.ended
  assert.equal(result.code, 6)
  assert.match(result.stdout, /order\.created {2}del_a {2}attempt 1 {2}SIGNATURE WRONG {2}answered 200\n\{"id":"evt_1"\}\n$/)
  assert.match(result.stderr, /1 of 1 requests had no right signature/)
})

test('a port that is taken says so', async (t) => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.after(() => taken.close())
  const { error } = await expectCli(1, ['listen', '--port', String((taken.address() as AddressInfo).port), '-o', 'json'])
  assert.match(error().message, /EADDRINUSE/)
  assert.match(error().hint ?? '', /--port/)
})
