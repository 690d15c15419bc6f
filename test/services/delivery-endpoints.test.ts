import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointHealth } from '../../shared/domain/health.ts'
import { createEndpoints } from '../../services/delivery/endpoints.ts'

function openEndpoints(t: { after(close: () => void): void }, write: (health: EndpointHealth) => Promise<void> = async () => undefined) {
  const clock = { now: 1_800_000_000_000 }
  const endpoints = createEndpoints({
    load: () => undefined, write, isOwner: () => true, now: () => clock.now, capStart: 10, capMax: 64, onWriteFailed: () => undefined,
  })
  t.after(endpoints.close)
  return { clock, endpoints }
}

test('the time an endpoint is quiet does not count against the pace it is given afterwards', (t) => {
  const { clock, endpoints } = openEndpoints(t)
  const endpoint = endpoints.get('ep_a')
  const attempt = (isSuccess: boolean): void => endpoints.finished(endpoint, {
    request: endpoint.cap.begin(), sign: isSuccess ? 'success' : 'overloaded', isSuccess, status: isSuccess ? 200 : 429, error: isSuccess ? null : 'http_429',
  })
  endpoint.rate.setBacklog(true, clock.now)
  for (let count = 0; count < 200; count += 1) {
    clock.now += 20
    attempt(true)
  }
  for (const _ of [1, 2, 3]) {
    attempt(false)
    endpoints.throttle(endpoint, 60_000, 10)
    assert.ok((endpoint.throttle.ratePerSecond ?? 0) > 40, `${endpoint.throttle.ratePerSecond} a second`)
    clock.now += 60_020
  }
})

test('a flush also waits for what was on its way before', async (t) => {
  const { promise: taken, resolve } = Promise.withResolvers<void>()
  const { endpoints } = openEndpoints(t, () => taken)
  const marked = endpoints.markGone(endpoints.get('ep_a'), 1)
  let isFlushed = false
  const flushed = endpoints.flush().then(() => { isFlushed = true })
  await new Promise(setImmediate)
  assert.equal(isFlushed, false)
  resolve()
  await Promise.all([marked, flushed])
})
