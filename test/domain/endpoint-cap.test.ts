import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createEndpointCap } from '../../shared/domain/endpoint-cap.ts'
import type { EndpointCap, LoadSign } from '../../shared/domain/endpoint-cap.ts'

const begin = (cap: EndpointCap, count: number) => Array.from({ length: count }, () => cap.begin())
const end = (cap: EndpointCap, requests: readonly number[], sign: LoadSign) => requests.forEach((request) => cap.end(request, sign))

test('one overload halves the cap once, however many of its requests report it', () => {
  const cap = createEndpointCap()
  const first = begin(cap, 10)
  assert.equal(cap.hasRoom(), false)
  end(cap, first.slice(0, 4), 'overloaded')
  assert.equal(cap.cap, 5)
  end(cap, first.slice(4), 'overloaded')
  assert.equal(cap.cap, 5)
  end(cap, begin(cap, 1), 'overloaded')
  assert.equal(cap.cap, 2)
  for (let i = 0; i < 5; i += 1) end(cap, begin(cap, 1), 'overloaded')
  assert.equal(cap.cap, 1)
  assert.equal(cap.inFlight, 0)
})

test('plus one after as many successes as the cap, if it was reached', () => {
  const cap = createEndpointCap({ start: 3, max: 4 })
  end(cap, begin(cap, 2), 'success')
  end(cap, begin(cap, 2), 'success')
  assert.equal(cap.cap, 3, 'never more than two at once: nothing learnt')
  const reached = begin(cap, 3)
  end(cap, reached.slice(0, 1), 'other')
  end(cap, reached.slice(1), 'success')
  assert.equal(cap.cap, 4)
  for (let i = 0; i < 5; i += 1) end(cap, begin(cap, 4), 'success')
  assert.equal(cap.cap, 4, 'not above the maximum')
})

test('the successes are counted anew after each step, and so is whether the cap was reached', () => {
  const cap = createEndpointCap({ start: 3 })
  const reached = begin(cap, 3)
  end(cap, reached.slice(0, 2), 'success')
  assert.equal(cap.cap, 3, 'one success short')
  end(cap, reached.slice(2), 'success')
  assert.equal(cap.cap, 4)
  for (let i = 0; i < 8; i += 1) end(cap, begin(cap, 1), 'success')
  assert.equal(cap.cap, 4, 'not reached since')
})

test('after a throttle it starts at 1, and what was begun before counts for nothing', () => {
  const cap = createEndpointCap()
  const before = begin(cap, 10)
  cap.afterThrottle()
  end(cap, before, 'success')
  assert.deepEqual([cap.cap, cap.inFlight, cap.hasRoom()], [1, 0, true])
  const [request] = begin(cap, 1)
  assert.equal(cap.hasRoom(), false)
  cap.end(request!, 'success')
  assert.equal(cap.cap, 2)
})

test('the cap stays within bounds, never more are started than it allows, and a cut is followed by none for older requests', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('begin', 'begin', 'success', 'success', 'overloaded', 'other', 'throttle'), fc.nat()), { maxLength: 300, size: 'max' })
  fc.assert(fc.property(steps, fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }), (run, start, max) => {
    const cap = createEndpointCap({ start, max })
    const open: { request: number; isOld: boolean }[] = []
    for (const [step, pick] of run) {
      const before = cap.cap
      if (step === 'begin') {
        if (!cap.hasRoom()) continue
        open.push({ request: cap.begin(), isOld: false })
        assert.ok(cap.inFlight <= cap.cap)
        assert.equal(cap.cap, before)
      } else if (step === 'throttle') {
        cap.afterThrottle()
        for (const one of open) one.isOld = true
        assert.equal(cap.cap, 1)
      } else if (open.length > 0) {
        const [{ request, isOld }] = open.splice(pick % open.length, 1) as [{ request: number; isOld: boolean }]
        cap.end(request, step)
        const isCut = step === 'overloaded' && !isOld
        if (isCut) for (const one of open) one.isOld = true
        if (isOld || step === 'other') assert.equal(cap.cap, before)
        else if (isCut) assert.equal(cap.cap, Math.max(1, Math.floor(before / 2)))
        else assert.ok(cap.cap === before || cap.cap === before + 1)
      }
      assert.ok(cap.cap >= 1 && cap.cap <= max)
      assert.equal(cap.inFlight, open.length)
    }
  }))
})
