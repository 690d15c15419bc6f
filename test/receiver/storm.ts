import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { dedupe, type DedupeResult } from '../../receiver/dedupe.ts'
import type { Store } from '../../receiver/store.ts'

export type StormFigures = { calls: number; runs: number; answered409: number; replayed: number; mostAtOnce: number }

type Work = { running: number; runs: number; hasSucceeded: boolean }

/**
 * Sends each of `ids` ids `repeats` times at the same time, each repeat until it is answered 2xx, to a handler that fails up to
 * twice an id (a throw, a 503) before it succeeds. Asserts that no id ever runs twice at once, none after it succeeded, and that all get
 * the answer of the one that did.
 */
export async function storm(store: Store, { ids, repeats }: { readonly ids: number; readonly repeats: number }): Promise<StormFigures> {
  const once = dedupe(store, { ttl: '1h', lock: '10m' })
  const works = Array.from({ length: ids }, (): Work => ({ running: 0, runs: 0, hasSucceeded: false }))
  const figures: StormFigures = { calls: 0, runs: 0, answered409: 0, replayed: 0, mostAtOnce: 0 }
  let atOnce = 0

  const handle = async (number: number, requestId: string) => {
    const work = works[number]!
    assert.equal(work.running, 0, `id ${number} ran twice at once`)
    assert.ok(!work.hasSucceeded, `id ${number} ran after it had succeeded`)
    work.running += 1
    work.runs += 1
    await delay((number * 7 + work.runs) % 5)
    work.running -= 1
    if (work.runs === 1 && number % 3 > 0) throw new Error('failed as it should')
    if (work.runs === 2 && number % 3 > 1) return { status: 503, body: 'not now' }
    work.hasSucceeded = true
    return { status: 201, contentType: 'application/json', body: JSON.stringify({ number, by: requestId }) }
  }

  const sendUntilTaken = async (number: number, call: number): Promise<DedupeResult> => {
    for (let tries = 1; ; tries += 1) {
      figures.calls += 1
      const requestId = `${number}-${call}-${tries}`
      const result = await once({ id: `del_${number}`, body: Buffer.from(`{"n":${number}}`), requestId }, () => handle(number, requestId))
        .catch((error: Error) => assert.equal(error.message, 'failed as it should'))
      if (result && result.status === 201) return result
      if (result && result.status === 409) {
        figures.answered409 += 1
        assert.equal(result.outcome, 'running')
        assert.ok(result.originalRequestId?.startsWith(`${number}-`))
        assert.ok(Number(result.headers['Retry-After']) >= 1)
      } else if (result) {
        assert.equal(result.status, 503)
      }
      await delay((call * 13 + tries * 29) % 40)
    }
  }

  const wave = async () => {
    const calls = Array.from({ length: ids * repeats }, async (_, call) => {
      atOnce += 1
      figures.mostAtOnce = Math.max(figures.mostAtOnce, atOnce)
      const result = await sendUntilTaken(call % ids, call)
      atOnce -= 1
      return { number: call % ids, result }
    })
    return Promise.all(calls)
  }

  const [first, second] = [await wave(), await wave()]
  const winners = first.filter(({ result }) => result.outcome === 'ran')
  assert.deepEqual(winners.map(({ number }) => number).sort((a, b) => a - b), works.map((_, number) => number), 'each id ran to its success once')
  const winnerOf = new Map(winners.map(({ number, result }) => [number, result]))
  for (const { number, result } of [...first, ...second]) {
    const winner = winnerOf.get(number)
    assert.deepEqual([result.status, Buffer.from(result.body).toString()], [winner?.status, Buffer.from(winner?.body ?? []).toString()])
    if (result === winner) continue
    assert.equal(result.headers['Idempotent-Replayed'], 'true')
    assert.equal(result.headers['Content-Type'], 'application/json')
    assert.equal(result.originalRequestId, winner?.requestId)
    figures.replayed += 1
  }
  assert.ok(second.every(({ result }) => result.outcome === 'replayed'), 'once it is done, nothing runs')
  assert.deepEqual(works.map(({ runs }) => runs), works.map((_, number) => number % 3 + 1), 'each failure was followed by one more run')
  figures.runs = works.reduce((sum, { runs }) => sum + runs, 0)
  return figures
}
