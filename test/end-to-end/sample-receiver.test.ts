import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Stripe } from 'stripe'
import { endpointNames } from '../../deploy/sample/endpoints.ts'
import type { Sabotage } from '../../deploy/sample/options.ts'
import { fromLine, type Arrival } from '../../deploy/sample/received-line.ts'
import { startReceiver } from '../../deploy/sample/receiver-process.ts'
import { until } from '../support/until.ts'

type Sent = { readonly status: number; readonly tookMs: number }

async function openReceiver(t: TestContext, sabotage: Sabotage | null = null) {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-receiver-'))
  t.after(() => rm(folder, { recursive: true }))
  const receiver = await startReceiver({ folder, endpoints: endpointNames, sabotage, signal: t.signal })
  t.after(receiver.stop)
  const lines = async (): Promise<Arrival[]> => (await readFile(receiver.logFile, 'utf8')).split('\n').filter(Boolean).map(fromLine)
  return {
    folder, lines,
    waitForLines: (count: number) => until(async () => { const all = await lines(); return all.length >= count && all }, { message: `${count} lines` }),
    async send(endpoint: string, delivery: string, { body = '{"id":"evt_1","data":"ü"}', signed = body, attempt = 1 }: { body?: string; signed?: string; attempt?: number } = {}): Promise<Sent> {
      const { url, secret } = receiver.wanted.find((one) => one.endpoint === endpoint)!
      const startedAt = performance.now()
      const { status } = await fetch(url, {
        method: 'POST', body,
        headers: {
          'x-webhook-delivery': delivery, 'x-webhook-attempt': String(attempt),
          'x-webhook-signature': Stripe.webhooks.generateTestHeaderString({ payload: signed, secret }),
        },
      })
      return { status, tookMs: performance.now() - startedAt }
    },
  }
}

test('each endpoint answers in its own way, and every request is logged', async (t) => {
  const { send, waitForLines, folder } = await openReceiver(t)
  assert.equal((await stat(join(folder, 'receiver.json'))).mode & 0o077, 0, 'its secrets are for nobody else')
  const slow = send('slow', 'del_s')
  assert.equal((await send('healthy', 'del_h')).status, 200)
  for (const expected of [503, 503, 200, 200]) assert.equal((await send('flaky', 'del_f')).status, expected)
  assert.equal((await send('flaky', 'del_other')).status, 503, 'counted for each delivery')
  assert.equal((await send('dead', 'del_d', { attempt: 3 })).status, 500)
  const { status, tookMs } = await slow
  assert.equal(status, 200)
  assert.ok(tookMs >= 1_900, String(tookMs))
  const lines = await waitForLines(8)
  const dead = lines.find(({ endpoint }) => endpoint === 'dead')!
  assert.deepEqual({ ...dead, receivedAt: 0, answeredAt: 0, sha256: '' }, {
    endpoint: 'dead', deliveryId: 'del_d', eventId: 'evt_1', attempt: 3, receivedAt: 0, answeredAt: 0, isVerified: true, status: 500, sha256: '',
  })
  assert.equal(dead.sha256.length, 64)
  const slowLine = lines.find(({ endpoint }) => endpoint === 'slow')!
  assert.ok(slowLine.receivedAt <= dead.receivedAt && slowLine.answeredAt - slowLine.receivedAt >= 1_900, 'both times: of the arrival and of the answer')
})

test('Stripe\'s package decides whether a signature is right', async (t) => {
  const { send, waitForLines } = await openReceiver(t)
  assert.equal((await send('healthy', 'del_1', { signed: '{"id":"evt_2"}' })).status, 401)
  assert.equal((await send('healthy', 'del_2')).status, 200)
  assert.deepEqual((await waitForLines(2)).map(({ isVerified, eventId, status }) => [isVerified, eventId, status]), [[false, null, 401], [true, 'evt_1', 200]])
})

test('sabotage: one endpoint has a wrong secret', async (t) => {
  const { send } = await openReceiver(t, 'secret')
  assert.equal((await send('healthy', 'del_1')).status, 401)
  assert.equal((await send('dead', 'del_1')).status, 500)
})

test('sabotage: one delivery is answered and not logged', async (t) => {
  const { send, waitForLines } = await openReceiver(t, 'log')
  for (const delivery of ['del_1', 'del_2', 'del_1']) assert.equal((await send('healthy', delivery)).status, 200)
  assert.deepEqual((await waitForLines(1)).map(({ deliveryId }) => deliveryId), ['del_2'])
})
