import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { bandOf, createAttemptHistory, healthBands } from '../../shared/domain/health.ts'

const hourMs = 3_600_000
const start = Date.parse('2026-01-01T00:00:00Z')
const attempts = fc.array(fc.record({ gapMs: fc.oneof(fc.nat(5000), fc.nat(20 * hourMs)), isSuccess: fc.boolean() }), { maxLength: 250, size: 'max' })

type Recorded = { at: number; isSuccess: boolean }
const weightOf = (at: number, now: number) => Math.exp((-0.1 * (now - Math.floor(at / 1000) * 1000)) / hourMs)
const isClose = (a: number, b: number) => Math.abs(a - b) < 1e-9

test('score and band score equal the formulas over the last 100 attempts, through pack and unpack', () => {
  fc.assert(fc.property(attempts, fc.nat(100 * hourMs), (run, idleMs) => {
    let history = createAttemptHistory()
    const all: Recorded[] = []
    let at = start
    run.forEach(({ gapMs, isSuccess }, index) => {
      at += gapMs
      history.record(at, isSuccess)
      all.push({ at, isSuccess })
      if (index % 60 === 59) history = createAttemptHistory({ attempts: history.pack(), band: history.band })
    })
    const recent = all.slice(-100)
    const now = at + 1000 + idleMs
    const good = recent.reduce((sum, one) => sum + (one.isSuccess ? weightOf(one.at, now) : 0), 0)
    const weights = recent.reduce((sum, one) => sum + weightOf(one.at, now), 0)
    assert.equal(history.count, recent.length)
    assert.ok(isClose(history.score(now), recent.length === 0 ? 1 : good / recent.length))
    assert.ok(isClose(history.bandScore(), recent.length === 0 ? 1 : good / weights))
    assert.ok(history.pack().length <= 401)
  }))
})

test('the band worsens on a failed attempt only, and otherwise follows the band score', () => {
  fc.assert(fc.property(attempts, (run) => {
    const history = createAttemptHistory()
    let at = start
    for (const { gapMs, isSuccess } of run) {
      at += gapMs
      const before = history.band
      const hasChanged = history.record(at, isSuccess)
      assert.equal(hasChanged, history.band !== before)
      assert.equal(history.band, bandOf(history.bandScore()))
      if (isSuccess) assert.ok(healthBands.indexOf(history.band) <= healthBands.indexOf(before))
    }
  }))
})

test('bands: above 0.9, above 0.5, the rest', () => {
  assert.deepEqual([1, 0.91, 0.9, 0.51, 0.5, 0].map(bandOf), ['healthy', 'healthy', 'degraded', 'degraded', 'unhealthy', 'unhealthy'])
})

test('an idle endpoint keeps its band while its score falls', () => {
  const history = createAttemptHistory()
  for (let i = 0; i < 20; i += 1) history.record(start, true)
  assert.ok(history.score(start + 24 * hourMs) < 0.1)
  assert.equal(history.band, 'healthy')
  assert.equal(history.bandScore(), 1)
  assert.equal(history.score(start - hourMs), 1, 'a clock that was ahead makes no success worth more than one')
})

test('a clock that was far ahead once does not outweigh all that follows', () => {
  const history = createAttemptHistory()
  history.record(start + 1000 * hourMs, true)
  for (let i = 0; i < 10; i += 1) history.record(start, false)
  assert.equal(history.band, 'unhealthy')
})

test('what cannot be read counts as no attempts', () => {
  const garbage = [null, Buffer.alloc(0), Buffer.from([1, 2]), Buffer.from([9, 0, 0, 0, 1]), Buffer.from('not packed at all')]
  for (const bytes of garbage) {
    const history = createAttemptHistory({ attempts: bytes, band: 'unhealthy' })
    assert.deepEqual([history.count, history.band, history.score(start)], [0, 'healthy', 1])
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
    const history = createAttemptHistory({ attempts: bytes })
    history.record(start, false)
    const score = history.score(start)
    assert.ok(score >= 0 && score <= 1 && history.count <= 100)
    assert.ok(history.bandScore() >= 0 && history.bandScore() <= 1)
  }))
})
