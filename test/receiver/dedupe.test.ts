import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dedupe, type DedupeOptions, type DedupeResult } from '../../receiver/dedupe.ts'
import { memoryStore } from '../../receiver/memory-store.ts'
import type { Claim, Store } from '../../receiver/store.ts'

const body = Buffer.from('{"id":"evt_1"}')
const text = (result: DedupeResult): string => Buffer.from(result.body).toString()
const problemOf = (result: DedupeResult): Record<string, unknown> => {
  assert.equal(result.headers['Content-Type'], 'application/problem+json')
  return JSON.parse(text(result)) as Record<string, unknown>
}

/** A handler that ends when the test says so. */
function held(): { handler: (claim: Claim) => Promise<{ status: number; body: string }>; claims: Claim[]; end(status?: number): void; fail(error: Error): void } {
  const claims: Claim[] = []
  let end: (status?: number) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const ended = new Promise<{ status: number; body: string }>((resolve, reject) => {
    end = (status = 200) => resolve({ status, body: 'of the first' })
    fail = reject
  })
  const handler = async (claim: Claim) => {
    claims.push(claim)
    return ended
  }
  return { handler, claims, end: (status) => end(status), fail: (error) => fail(error) }
}

const mustNotRun = (): never => assert.fail('it ran again')

test('the first call runs, a repeat gets its status, body and content type', async () => {
  const once = dedupe(memoryStore())
  const first = await once({ id: 'del_1', body, requestId: 'r1' }, () => ({ status: 202, contentType: 'application/json', body: '{"n":1}' }))
  assert.deepEqual([first.outcome, first.status, text(first), first.requestId, first.originalRequestId], ['ran', 202, '{"n":1}', 'r1', null])
  assert.deepEqual(first.headers, { 'Content-Type': 'application/json', 'Request-Id': 'r1' })
  const repeat = await once({ id: 'del_1', body, requestId: 'r2' }, mustNotRun)
  assert.deepEqual([repeat.outcome, repeat.status, text(repeat), repeat.originalRequestId], ['replayed', 202, '{"n":1}', 'r1'])
  assert.deepEqual(repeat.headers, {
    'Content-Type': 'application/json', 'Idempotent-Replayed': 'true', 'Request-Id': 'r2', 'Original-Request-Id': 'r1',
  })
})

test('answers of every form come back as they were', async () => {
  const once = dedupe(memoryStore())
  const forms = [undefined, {}, { status: 204 }, { body: '' }, { body: 'grüezi' }, { body: Buffer.from([0, 255]), contentType: 'image/x' }, { body: new Uint8Array(3) }]
  for (const [n, form] of forms.entries()) {
    const first = await once({ id: `del_${n}`, body }, () => form)
    const repeat = await once({ id: `del_${n}`, body }, mustNotRun)
    assert.deepEqual([repeat.status, Buffer.from(repeat.body)], [first.status, Buffer.from(first.body)])
    assert.equal(repeat.headers['Content-Type'], first.headers['Content-Type'])
  }
})

test('while it runs a repeat gets 409 with the first request id and when to come back', async () => {
  const once = dedupe(memoryStore(), { lock: '90s' })
  const { handler, end } = held()
  const first = once({ id: 'del_1', body, requestId: 'r1' }, handler)
  const repeat = await once({ id: 'del_1', body }, mustNotRun)
  assert.deepEqual([repeat.outcome, repeat.status, repeat.originalRequestId], ['running', 409, 'r1'])
  assert.equal(problemOf(repeat)['originalRequestId'], 'r1')
  assert.equal(repeat.headers['Retry-After'], '90', 'what is left of the lock: then it is done, or can be taken over')
  end()
  assert.equal((await first).outcome, 'ran')
  assert.equal((await once({ id: 'del_1', body }, mustNotRun)).outcome, 'replayed')
})

test('the same id with another body gets 422, while the first runs and when it is done', async () => {
  const once = dedupe(memoryStore())
  const { handler, end } = held()
  const first = once({ id: 'del_1', body, requestId: 'r1' }, handler)
  for (const wait of [() => Promise.resolve(), async () => void (end(), await first)]) {
    await wait()
    const repeat = await once({ id: 'del_1', body: Buffer.from('{"id":"evt_2"}') }, mustNotRun)
    assert.deepEqual([repeat.outcome, repeat.status, problemOf(repeat)['originalRequestId']], ['conflict', 422, 'r1'])
    assert.equal(repeat.headers['Retry-After'], undefined, 'it will not get better')
  }
})

test('a throw and any status but 2xx release the claim: the next one runs', async () => {
  const once = dedupe(memoryStore())
  const error = new Error('the database is away')
  await assert.rejects(once({ id: 'del_1', body }, () => { throw error }), (thrown) => thrown === error)
  for (const status of [500, 503, 429, 400, 301]) {
    const result = await once({ id: 'del_1', body }, () => ({ status, body: 'no' }))
    assert.deepEqual([result.outcome, result.status, text(result)], ['failed', status, 'no'])
  }
  await assert.rejects(once({ id: 'del_1', body }, () => ({ status: 99 })), /status 99/)
  await assert.rejects(once({ id: 'del_1', body }, () => ({ body: { n: 1 } as never })), /neither text nor bytes/)
  await assert.rejects(once({ id: 'del_1', body }, () => { throw 'text' as unknown as Error }), /no Error was thrown: text/)
  assert.equal((await once({ id: 'del_1', body }, () => ({ status: 200 }))).outcome, 'ran')
})

test('what is final can be widened', async () => {
  const once = dedupe(memoryStore(), { isFinal: (status) => status < 500 })
  await once({ id: 'del_1', body }, () => ({ status: 400, body: 'bad' }))
  const repeat = await once({ id: 'del_1', body }, mustNotRun)
  assert.deepEqual([repeat.status, text(repeat), repeat.headers['Idempotent-Replayed']], [400, 'bad', 'true'])
})

test('after its lock a claim is taken over with a larger token; the late holder changes nothing, whatever it ends with', async () => {
  for (const late of ['success', 'failure', 'throw'] as const) {
    let now = 0
    const once = dedupe(memoryStore({ now: () => now }), { lock: '30s' })
    const slow = held()
    const first = once({ id: 'del_1', body, requestId: 'r1' }, slow.handler)
    now = 29_999
    assert.equal((await once({ id: 'del_1', body }, mustNotRun)).headers['Retry-After'], '1')
    now = 30_000
    const next = held()
    const second = once({ id: 'del_1', body, requestId: 'r2' }, next.handler)
    const third = await once({ id: 'del_1', body }, mustNotRun)
    assert.deepEqual([third.status, third.originalRequestId], [409, 'r2'])
    assert.ok(next.claims[0]!.token > slow.claims[0]!.token)

    if (late === 'throw') slow.fail(new Error('late'))
    else slow.end(late === 'success' ? 200 : 500)
    if (late === 'throw') await assert.rejects(first, /late/)
    else assert.deepEqual([(await first).outcome, (await first).status], late === 'success' ? ['overtaken', 409] : ['failed', 500])
    assert.equal((await once({ id: 'del_1', body }, mustNotRun)).outcome, 'running', 'the claim of the second still holds')

    next.end(201)
    assert.equal((await second).outcome, 'ran')
    const repeat = await once({ id: 'del_1', body }, mustNotRun)
    assert.deepEqual([repeat.status, repeat.originalRequestId], [201, 'r2'])
  }
})

test("the handler's signal is aborted when its lock is over, and not before", async () => {
  const once = dedupe(memoryStore(), { lock: 50 })
  const startedAt = performance.now()
  const result = once({ id: 'del_1', body }, ({ signal }) => new Promise((_, reject) => {
    assert.equal(signal.aborted, false)
    signal.addEventListener('abort', () => reject(signal.reason))
  }))
  await assert.rejects(result, /the lock of webhook\/del_1 is over/)
  assert.ok(performance.now() - startedAt >= 45)
  let signal: AbortSignal | null = null
  await once({ id: 'del_2', body }, (claim) => void (signal = claim.signal))
  assert.equal((signal as AbortSignal | null)?.aborted, false)
})

test('an id is forgotten when its ttl is over, counted from its end', async () => {
  let now = 0
  const once = dedupe(memoryStore({ now: () => now }), { ttl: '2d', lock: '1d' })
  const { handler, end } = held()
  const first = once({ id: 'del_1', body }, handler)
  now = 3_600_000
  end()
  await first
  now += 2 * 86_400_000 - 1
  assert.equal((await once({ id: 'del_1', body }, mustNotRun)).outcome, 'replayed')
  now += 1
  assert.equal((await once({ id: 'del_1', body }, () => undefined)).outcome, 'ran')
})

test('by default an id is remembered longer than posthouse may send it: 14 days, 30 as a dead letter, 14 once replayed', async () => {
  let ttlMs = 0
  const store = memoryStore()
  const once = dedupe({ ...store, claim: (request) => { ttlMs = request.ttlMs; return store.claim(request) } })
  await once({ id: 'del_1', body }, () => undefined)
  assert.ok(ttlMs > (14 + 30 + 14) * 86_400_000)
})

test('scopes keep ids apart', async () => {
  const store = memoryStore()
  for (const scope of ['orders', 'customers']) {
    assert.equal((await dedupe(store, { scope })({ id: 'del_1', body }, () => undefined)).outcome, 'ran')
  }
})

/** A store that fails as often as told before it works. */
function failingStore(fails: { claim?: number; finish?: number; release?: number }): Store & { readonly inner: Store } {
  const inner = memoryStore()
  const left = { claim: 0, finish: 0, release: 0, ...fails }
  const orFail = <Result>(call: keyof typeof left, then: () => Promise<Result>): Promise<Result> => {
    left[call] -= 1
    return left[call] >= 0 ? Promise.reject(new Error(`${call} failed`)) : then()
  }
  return {
    inner,
    claim: (request) => orFail('claim', () => inner.claim(request)),
    finish: (claim, answer) => orFail('finish', () => inner.finish(claim, answer)),
    release: (claim) => orFail('release', () => inner.release(claim)),
  }
}

test('a store that cannot be asked: nothing runs', async () => {
  await assert.rejects(dedupe(failingStore({ claim: 1 }))({ id: 'del_1', body }, mustNotRun), /claim failed/)
})

test("a store that cannot be told of the end is told again; at last the answer is the handler's, and the error comes along", async () => {
  const soon = dedupe(failingStore({ finish: 2 }))
  const told = await soon({ id: 'del_1', body }, () => ({ status: 201 }))
  assert.deepEqual([told.outcome, told.status, told.storeError], ['ran', 201, null])
  assert.equal((await soon({ id: 'del_1', body }, mustNotRun)).outcome, 'replayed')

  const never = dedupe(failingStore({ finish: 99 }))
  const untold = await never({ id: 'del_1', body }, () => ({ status: 201 }))
  assert.deepEqual([untold.outcome, untold.status], ['ran', 201])
  assert.match(untold.storeError?.message ?? '', /finish failed/)
  assert.equal((await never({ id: 'del_1', body }, mustNotRun)).status, 409, 'until the lock is over')
})

test('an end that was stored and whose acknowledgement got lost is no take-over', async () => {
  const inner = memoryStore()
  let calls = 0
  const store: Store = {
    ...inner,
    finish: async (claim, answer) => {
      const finished = await inner.finish(claim, answer)
      calls += 1
      if (calls === 1) throw new Error('connection lost')
      return finished
    },
  }
  assert.equal((await dedupe(store)({ id: 'del_1', body }, () => undefined)).outcome, 'ran')
  assert.equal(calls, 2)
})

test('a claim that cannot be released: the failure is told with it', async () => {
  const once = dedupe(failingStore({ release: 2 }))
  const failed = await once({ id: 'del_1', body }, () => ({ status: 503 }))
  assert.deepEqual([failed.outcome, failed.status, failed.storeError?.message], ['failed', 503, 'release failed'])
  await assert.rejects(once({ id: 'del_2', body }, () => { throw new Error('boom') }), (thrown: AggregateError) => {
    assert.deepEqual(thrown.errors.map((error: Error) => error.message), ['boom', 'release failed'])
    return /boom/.test(thrown.message)
  })
})

test('options and ids that cannot be meant are refused', async () => {
  const store = memoryStore()
  for (const options of [{ ttl: 0 }, { lock: '1 hour' }, { lock: '30d', ttl: '60d' }, { ttl: '1s', lock: '2s' }, { ttl: Infinity }] as DedupeOptions[]) {
    assert.throws(() => dedupe(store, options), RangeError, JSON.stringify(options))
  }
  for (const scope of ['', 'a/b', 'a b']) assert.throws(() => dedupe(store, { scope }), TypeError)
  for (const id of ['', 'x'.repeat(256), undefined as unknown as string]) await assert.rejects(dedupe(store)({ id, body }, mustNotRun), TypeError)
})
