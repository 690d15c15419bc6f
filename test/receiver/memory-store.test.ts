import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStore } from '../../receiver/memory-store.ts'
import { assertFollowsModel } from './store-model.ts'
import { storm } from './storm.ts'

const answer = (bytes = 0) => ({ status: 200, contentType: null, body: new Uint8Array(bytes) })
const claim = (key: string, { lockMs = 1_000, ttlMs = 10_000 } = {}) => ({ key, fingerprint: 'x', requestId: `for ${key}`, lockMs, ttlMs })

test('the memory store answers as it is described, whatever the order of calls', async () => {
  await assertFollowsModel(() => {
    let now = 0
    return { store: memoryStore({ now: () => now }), wait: (ms) => void (now += ms) }
  }, { numRuns: 2_000 })
})

test('1,000 concurrent repeats of 100 ids: never two at once, none after a success', async (t) => {
  t.diagnostic(JSON.stringify(await storm(memoryStore(), { ids: 100, repeats: 10 })))
})

test('100 ids, 100 concurrent repeats of each', async (t) => {
  t.diagnostic(JSON.stringify(await storm(memoryStore(), { ids: 100, repeats: 100 })))
})

test('what is finished makes room, the oldest first; what is running never does', async () => {
  const store = memoryStore({ maxEntries: 3 })
  for (const key of ['a', 'b', 'c']) {
    const result = await store.claim(claim(key))
    assert.ok(result.state === 'claimed')
    if (key !== 'b') await store.finish({ key, token: result.token, ttlMs: 10_000 }, answer())
  }
  assert.deepEqual([store.size, store.forgottenEarly], [3, 0])
  assert.equal((await store.claim(claim('d'))).state, 'claimed')
  assert.deepEqual([store.size, store.forgottenEarly], [3, 1])
  const states = await Promise.all(['b', 'c', 'd'].map(async (key) => (await store.claim(claim(key))).state))
  assert.deepEqual(states, ['running', 'finished', 'running'])
  assert.equal((await store.claim(claim('e'))).state, 'claimed')
  await assert.rejects(store.claim(claim('f')), /3 running claims.*maxEntries/)
  assert.equal((await store.claim(claim('b'))).state, 'running', 'those that run are still known')
})

test('bytes are bounded too, and what has expired makes room by itself', async () => {
  let now = 0
  const store = memoryStore({ maxBytes: 100_000, now: () => now })
  const finishOne = async (key: string, bytes: number) => {
    const result = await store.claim(claim(key))
    assert.ok(result.state === 'claimed')
    assert.ok(await store.finish({ key, token: result.token, ttlMs: 10_000 }, answer(bytes)))
  }
  for (let n = 0; n < 20; n += 1) await finishOne(`key ${n}`, 10_000)
  assert.deepEqual([store.size, store.forgottenEarly], [9, 11])
  now = 10_000
  await finishOne('later', 1)
  assert.deepEqual([store.size, store.forgottenEarly], [1, 11])
  for (let n = 0; n < 1_000; n += 1) await store.release({ key: 'later', token: 999, ttlMs: 1 })
  for (let n = 0; n < 9; n += 1) await finishOne(`again ${n}`, 10_000)
  assert.equal(store.forgottenEarly, 11, 'what was forgotten weighs nothing')
})

test('an answer that the handler changes later is kept as it was', async () => {
  const store = memoryStore()
  const result = await store.claim(claim('a'))
  assert.ok(result.state === 'claimed')
  const body = Buffer.from('first')
  await store.finish({ key: 'a', token: result.token, ttlMs: 10_000 }, { ...answer(), body })
  body.write('other')
  const repeat = await store.claim(claim('a'))
  assert.ok(repeat.state === 'finished')
  assert.equal(Buffer.from(repeat.answer.body).toString(), 'first')
})

test('bounds that cannot be meant are refused', () => {
  for (const bad of [0, -1, NaN]) {
    assert.throws(() => memoryStore({ maxEntries: bad }), RangeError)
    assert.throws(() => memoryStore({ maxBytes: bad }), RangeError)
  }
})
