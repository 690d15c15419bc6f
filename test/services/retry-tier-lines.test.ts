import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createOffsetLedger } from '../../shared/domain/offset-ledger.ts'
import { Lease, PartitionWindow } from '../../shared/kafka/partition-window.ts'
import { createSoonLine } from '../../services/retry-tier/soon.ts'
import { createTierLine } from '../../services/retry-tier/tier.ts'
import type { WaitingLine } from '../../services/retry-tier/waiting-line.ts'

const windowOf = (partition: number): PartitionWindow => new PartitionWindow({
  topic: 'retry.x', partition, tag: '', ledger: createOffsetLedger({ committedOffset: null, metadata: null }), onFinished: () => undefined,
})

function leaseOf(window: PartitionWindow, offset: number, timestamp: number): Lease {
  return new Lease({ topic: window.topic, partition: window.partition, offset, key: null, value: Buffer.from('x'), headers: [], timestamp }, 1, window)
}

/** Everything the line gives up to `now`, as `partition/offset`. */
function takeAll(line: WaitingLine, now: number): string[] {
  const taken: string[] = []
  for (let ready = line.takeReady(now); ready !== null; ready = line.takeReady(now)) {
    taken.push(`${ready.lease.record.partition}/${ready.lease.record.offset}`)
  }
  return taken
}

const arrivals = fc.array(fc.record({ partition: fc.nat(3), gapMs: fc.nat(50), takeAfter: fc.boolean() }), { maxLength: 300 })

test('a tier gives each record once, in the order of its partition, never before its append time plus the delay', () => {
  fc.assert(fc.property(arrivals, fc.integer({ min: 1, max: 2_000 }), (records, delayMs) => {
    const windows = [0, 1, 2, 3].map(windowOf)
    const line = createTierLine(delayMs)
    const nextOffset = [0, 0, 0, 0]
    const expected = [0, 0, 0, 0]
    let now = 1_000
    const take = (): void => {
      for (let ready = line.takeReady(now); ready !== null; ready = line.takeReady(now)) {
        const { partition, offset, timestamp } = ready.lease.record
        assert.equal(offset, expected[partition])
        expected[partition]! += 1
        assert.equal(ready.readyAt, timestamp + delayMs)
        assert.ok(ready.readyAt <= now)
      }
      const next = line.nextReadyAt()
      assert.ok(next === null || next > now)
    }
    for (const { partition, gapMs, takeAfter } of records) {
      now += gapMs
      line.push(leaseOf(windows[partition]!, nextOffset[partition]!, now))
      nextOffset[partition]! += 1
      if (takeAfter) take()
    }
    assert.equal(line.size, sum(nextOffset) - sum(expected))
    now += delayMs
    take()
    assert.deepEqual(expected, nextOffset)
    assert.equal(line.size, 0)
  }), { numRuns: 200 })
})

test('a line of thousands is given in order while more arrive', () => {
  const line = createTierLine(0)
  const window = windowOf(0)
  const taken: string[] = []
  for (let offset = 0; offset < 3_000; offset += 1) {
    line.push(leaseOf(window, offset, offset))
    // Slower than they arrive at first, then faster.
    taken.push(...takeAll(line, offset < 1_000 ? offset / 2 : offset - 100))
  }
  taken.push(...takeAll(line, 3_000))
  assert.deepEqual(taken, Array.from({ length: 3_000 }, (_, offset) => `0/${offset}`))
})

test('only heads are looked at: a head of another partition does not hold back one that is ready', () => {
  const line = createTierLine(100)
  const [first, second] = [windowOf(0), windowOf(1)]
  line.push(leaseOf(first, 0, 1_050))
  line.push(leaseOf(second, 0, 1_000))
  assert.equal(line.nextReadyAt(), 1_100)
  assert.deepEqual(takeAll(line, 1_100), ['1/0'])
  assert.deepEqual(takeAll(line, 1_149), [])
  assert.deepEqual(takeAll(line, 1_150), ['0/0'])
  assert.equal(line.nextReadyAt(), null)
})

test('a broker clock that was set back makes records late, not early', () => {
  const line = createTierLine(100)
  const window = windowOf(0)
  line.push(leaseOf(window, 0, 2_000))
  line.push(leaseOf(window, 1, 1_000))
  assert.deepEqual(takeAll(line, 2_099), [])
  assert.deepEqual(takeAll(line, 2_100), ['0/0', '0/1'])
})

test('what is lost is forgotten, what is held anew stays', () => {
  for (const line of [createTierLine(0), createSoonLine((lease) => lease.record.timestamp)]) {
    const [lost, kept, anew] = [windowOf(0), windowOf(1), windowOf(0)]
    for (let offset = 0; offset < 200; offset += 1) line.push(leaseOf(lost, offset, offset))
    line.push(leaseOf(kept, 0, 500))
    for (let taken = 0; taken < 70; taken += 1) assert.ok(line.takeFirst())
    lost.isHeld = false
    line.push(leaseOf(anew, 70, 501))
    line.dropLost()
    assert.equal(line.size, 2)
    assert.deepEqual(takeAll(line, 1_000), ['1/0', '0/70'])
    assert.equal(line.takeFirst(), null)
  }
})

test('soon gives what is due, in due order across partitions, and equal ones in the order they came', () => {
  const line = createSoonLine((lease) => lease.record.timestamp)
  const [first, second] = [windowOf(0), windowOf(1)]
  line.push(leaseOf(first, 0, 30))
  line.push(leaseOf(second, 0, 10))
  line.push(leaseOf(first, 1, 20))
  line.push(leaseOf(second, 1, 20))
  assert.equal(line.nextReadyAt(), 10)
  assert.deepEqual(takeAll(line, 20), ['1/0', '0/1', '1/1'])
  assert.deepEqual(takeAll(line, 29), [])
  assert.deepEqual(takeAll(line, 30), ['0/0'])
})

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
