import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { ClaimResult, HeldClaim, Store, StoredAnswer } from '../../receiver/store.ts'

/** One step of a test of a store; `held` counts through all claims that were ever got, so most are stale. */
type Step =
  | { readonly kind: 'claim'; readonly key: string; readonly fingerprint: string }
  | { readonly kind: 'finish' | 'release'; readonly held: number }
  | { readonly kind: 'wait'; readonly ms: number }

type Entry = { fingerprint: string; requestId: string; token: number; lockUntil: number; expiresAt: number; answer: StoredAnswer | null }

/** Long, so that the time that passes while a test runs does not matter. */
const lockMs = 600_000
const ttlMs = 3_000_000

const step = (): fc.Arbitrary<Step> => fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), key: fc.constantFrom('a', 'b'), fingerprint: fc.constantFrom('x', 'x', 'x', 'y') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('finish' as const, 'release' as const), held: fc.nat({ max: 9 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(200_000, 650_000, 2_500_000, 3_100_000) }) },
)

export type StoreUnderTest = {
  readonly store: Store
  /** Lets time pass, as the store sees it. */
  wait(ms: number): void | Promise<void>
}

/** Runs sequences of calls, stale ones among them, and asserts that a store answers each as the description of `Store` says. */
export async function assertFollowsModel(fresh: () => StoreUnderTest | Promise<StoreUnderTest>, { numRuns }: { readonly numRuns: number }): Promise<void> {
  await fc.assert(fc.asyncProperty(fc.array(step(), { minLength: 5, maxLength: 25 }), async (steps) => {
    const { store, wait } = await fresh()
    const entries = new Map<string, Entry>()
    const held: HeldClaim[] = []
    const lastTokens = new Map<string, number>()
    let now = 0
    for (const [number, current] of steps.entries()) {
      if (current.kind === 'wait') {
        now += current.ms
        await wait(current.ms)
      } else if (current.kind === 'claim') {
        const result = await store.claim({ ...current, requestId: `request ${number}`, lockMs, ttlMs })
        const known = liveEntry(entries, current.key, now)
        if (isFree(known, current.fingerprint, now)) {
          assert.equal(result.state, 'claimed', `step ${number}`)
          const { token } = result
          assert.ok(token > (lastTokens.get(current.key) ?? 0), 'tokens of a key only grow')
          lastTokens.set(current.key, token)
          held.push({ key: current.key, token, ttlMs })
          entries.set(current.key, {
            fingerprint: current.fingerprint, requestId: `request ${number}`, token, lockUntil: now + lockMs, expiresAt: now + ttlMs, answer: null,
          })
        } else {
          assertTold(result, known!, current.fingerprint, now, `step ${number}`)
        }
      } else {
        const claim = held[current.held % Math.max(1, held.length)]
        if (claim === undefined) continue
        const known = liveEntry(entries, claim.key, now)
        const isOurs = known?.token === claim.token
        const answer = { status: 200 + number, contentType: number % 2 === 0 ? null : 'text/plain', body: Buffer.from(`\u0000answer ${number}\u00ff`, 'latin1') }
        if (current.kind === 'finish') {
          assert.equal(await store.finish(claim, answer), isOurs, `step ${number}`)
          if (isOurs) Object.assign(known, { answer, expiresAt: now + ttlMs })
        } else {
          const isReleased = isOurs && known.answer === null
          assert.equal(await store.release(claim), isReleased, `step ${number}`)
          if (isReleased) entries.delete(claim.key)
        }
      }
    }
  }), { numRuns })
}

function liveEntry(entries: Map<string, Entry>, key: string, now: number): Entry | undefined {
  const entry = entries.get(key)
  return entry !== undefined && entry.expiresAt > now ? entry : undefined
}

function isFree(entry: Entry | undefined, fingerprint: string, now: number): boolean {
  return entry === undefined || (entry.fingerprint === fingerprint && entry.answer === null && entry.lockUntil <= now)
}

function assertTold(result: ClaimResult, known: Entry, fingerprint: string, now: number, hint: string): void {
  const expected = known.fingerprint !== fingerprint ? 'conflict' : known.answer === null ? 'running' : 'finished'
  assert.equal(result.state, expected, hint)
  assert.equal('requestId' in result ? result.requestId : null, known.requestId, hint)
  if (result.state === 'running') assert.ok(result.retryAfterMs > 0 && result.retryAfterMs <= known.lockUntil - now, hint)
  if (result.state === 'finished') {
    assert.deepEqual({ ...result.answer, body: Buffer.from(result.answer.body) }, known.answer, hint)
  }
}
