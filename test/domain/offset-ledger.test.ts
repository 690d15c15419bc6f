import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createOffsetLedger } from '../../shared/domain/offset-ledger.ts'
import type { OffsetCommit } from '../../shared/domain/offset-ledger.ts'

const fresh = { committedOffset: null, metadata: null }

test('the lowest offset not done is committed, with what is done above it', () => {
  const ledger = createOffsetLedger({ committedOffset: 100, metadata: '' })
  assert.equal(ledger.commit(), null, 'nothing to say before anything was read')
  for (const offset of [100, 101, 102, 103, 104]) assert.equal(ledger.begin(offset), true)
  assert.equal(ledger.commit(), null, 'nothing is done yet')
  assert.deepEqual([ledger.unfinishedCount, ledger.lowestUnfinished, ledger.span], [5, 100, 5])
  ledger.done(100)
  ledger.done(103)
  const commit = ledger.commit()
  assert.equal(commit?.offset, 101)
  assert.equal(ledger.commit(), commit, 'the same until it is marked')
  ledger.markCommitted(commit)
  assert.equal(ledger.commit(), null)

  const next = createOffsetLedger({ committedOffset: commit.offset, metadata: commit.metadata, lowOffset: 0, highOffset: 105 })
  assert.deepEqual([99, 100, 101, 102, 103, 104].map((offset) => next.isDone(offset)), [true, true, false, false, true, false])
})

test('when nothing is unfinished the next offset is committed', () => {
  const ledger = createOffsetLedger(fresh)
  assert.equal(ledger.position, null)
  assert.equal(ledger.isDone(0), false)
  ledger.begin(50)
  assert.deepEqual(ledger.commit(), { offset: 50, metadata: '' })
  assert.equal(ledger.done(50), true)
  assert.equal(ledger.done(50), false)
  assert.equal(ledger.done(7), false)
  assert.deepEqual(ledger.commit(), { offset: 51, metadata: '' })
  ledger.seen(60)
  assert.deepEqual(ledger.commit(), { offset: 61, metadata: '' }, 'control records at the end leave no lag')
  assert.deepEqual([ledger.span, ledger.lowestUnfinished, ledger.position], [0, null, 61])
})

test('gaps count as done, and an offset read again is not begun again', () => {
  const ledger = createOffsetLedger(fresh)
  ledger.begin(10)
  ledger.begin(20)
  assert.equal(ledger.isDone(15), true)
  assert.equal(ledger.begin(20), false)
  assert.equal(ledger.isUnfinished(20), true)
  assert.equal(ledger.begin(15), false)
  ledger.done(10)
  assert.equal(ledger.begin(10), false)
  assert.equal(ledger.commit()?.offset, 20)
})

test('a gap after the last done one is passed with the next begin', () => {
  const ledger = createOffsetLedger({ committedOffset: 10, metadata: null })
  ledger.begin(10)
  ledger.done(10)
  assert.equal(ledger.commit()?.offset, 11)
  ledger.begin(30)
  assert.deepEqual(ledger.commit(), { offset: 30, metadata: '' })
})

test('an owner that has read nothing writes nothing over what it found', () => {
  assert.equal(createOffsetLedger(fresh).commit(), null)
  assert.equal(createOffsetLedger({ committedOffset: 10, metadata: 'not ours' }).commit(), null)
  assert.equal(createOffsetLedger({ committedOffset: 900, metadata: null, highOffset: 20 }).commit(), null)
})

test('a restored run that is half read is neither lost nor stretched', () => {
  const before = createOffsetLedger({ committedOffset: 0, metadata: null })
  for (let offset = 0; offset < 400; offset += 1) before.begin(offset)
  for (let offset = 100; offset < 300; offset += 1) before.done(offset)
  const { metadata } = before.commit()!
  const after = createOffsetLedger({ committedOffset: 0, metadata })
  for (let offset = 0; offset < 200; offset += 1) after.begin(offset)
  after.done(5)
  const third = createOffsetLedger({ committedOffset: 0, metadata: after.commit()!.metadata })
  for (let offset = 0; offset < 400; offset += 1) assert.equal(third.isDone(offset), offset === 5 || (offset >= 100 && offset < 300), `${offset}`)
})

test('a log that went back to below where the account began is our trouble, not a record done', () => {
  const ledger = createOffsetLedger(fresh)
  ledger.begin(500)
  assert.equal(ledger.isDone(3), false)
  assert.throws(() => ledger.begin(3), /Offset 3 was read after this account began at 500/)
})

test('restored offsets are skipped, and the commit passes them once all before them are done', () => {
  const before = createOffsetLedger({ committedOffset: 0, metadata: null })
  for (let offset = 0; offset < 10; offset += 1) before.begin(offset)
  for (const offset of [2, 3, 7, 8]) before.done(offset)
  const commit = before.commit()!
  const after = createOffsetLedger({ committedOffset: commit.offset, metadata: commit.metadata, lowOffset: 0, highOffset: 10 })
  assert.deepEqual([0, 1, 2, 3, 4].map((offset) => after.begin(offset)), [true, true, false, false, true])
  after.done(0)
  after.done(1)
  after.done(4)
  // 5 and 6 were not read yet; 7 and 8 are known to be done.
  const second = after.commit()!
  assert.equal(second.offset, 5)
  const third = createOffsetLedger({ committedOffset: second.offset, metadata: second.metadata })
  assert.deepEqual([5, 6, 7, 8, 9].map((offset) => third.isDone(offset)), [false, false, true, true, false])
  for (const offset of [5, 6]) third.begin(offset)
  for (const offset of [5, 6]) third.done(offset)
  assert.deepEqual(third.commit(), { offset: 9, metadata: '' })
})

test('a commit of another log is ignored, and so is a set that is unreadable or reaches beyond the end', () => {
  const ledger = createOffsetLedger({ committedOffset: 0, metadata: null })
  for (let offset = 0; offset < 5; offset += 1) ledger.begin(offset)
  ledger.done(3)
  ledger.done(0)
  const { offset, metadata } = ledger.commit()!
  const isDone3 = (options: { committedOffset?: number; metadata?: string; lowOffset?: number; highOffset?: number }) =>
    createOffsetLedger({ committedOffset: offset, metadata, lowOffset: 0, highOffset: 5, ...options }).isDone(3)
  assert.equal(isDone3({}), true)
  assert.equal(isDone3({ highOffset: 3 }), false, 'the set reaches beyond the end')
  assert.equal(isDone3({ highOffset: 0 }), false, 'the offset lies beyond the end')
  assert.equal(isDone3({ lowOffset: 2 }), false, 'the offset lies below the beginning')
  assert.equal(isDone3({ metadata: 'n=12' }), false)
  assert.equal(createOffsetLedger({ committedOffset: 900, metadata: null, highOffset: 20 }).isDone(10), false, 'a topic made anew')
  assert.equal(createOffsetLedger({ committedOffset: -1, metadata: null }).position, null)
})

/** A partition's log with gaps, worked on by one owner after another, each of which may crash at any point. */
test('whatever the order and wherever it crashes, nothing unfinished is passed and only done ones are skipped', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('begin', 'begin', 'begin', 'done', 'done', 'seen', 'commit', 'mark', 'crash'), fc.nat()), { minLength: 20, maxLength: 300, size: 'max' })
  const gaps = fc.array(fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 40 })), { minLength: 5, maxLength: 250, size: 'max' })
  fc.assert(fc.property(steps, gaps, fc.constantFrom(0, 12, 20, 4096), fc.nat(50), (run, jumps, maxMetadata, first) => {
    const log = jumps.reduce<number[]>((offsets, jump) => [...offsets, (offsets.at(-1) ?? first) + jump], [])
    const high = log.at(-1)! + 1
    const finished = new Set<number>()
    let stored: OffsetCommit | null = null
    let doneWhenStored = new Set<number>()
    let inHand = new Set<number>()
    let known = new Set<number>() // done, and the present owner has it from the commit or its own work
    let reading = 0
    let computed: { commit: OffsetCommit; done: Set<number> } | null = null
    const open = () => createOffsetLedger({ committedOffset: stored?.offset ?? null, metadata: stored?.metadata ?? null, lowOffset: first, highOffset: high, maxMetadata })
    let ledger = open()
    for (const [step, pick] of run) {
      if (step === 'begin') {
        for (let count = pick % 12; count >= 0 && reading < log.length; count -= 1) {
          const offset = log[reading]!
          reading += 1
          const wasKnown = ledger.isDone(offset)
          const isBegun = ledger.begin(offset)
          assert.equal(isBegun, !wasKnown)
          if (isBegun) inHand.add(offset)
          else assert.ok(finished.has(offset), `${offset} was skipped and never done`)
          if (isBegun && maxMetadata === 4096) assert.ok(!doneWhenStored.has(offset), `${offset} is repeated though it was committed as done`)
        }
      } else if (step === 'done' && inHand.size > 0) {
        const from = pick % inHand.size
        for (const offset of [...inHand].slice(from, from + (pick % 9) + 1)) {
          inHand.delete(offset)
          finished.add(offset)
          known.add(offset)
          assert.equal(ledger.done(offset), true)
        }
      } else if (step === 'seen' && reading > 0) {
        ledger.seen(log[reading - 1]!)
      } else if (step === 'commit') {
        const commit = ledger.commit()
        if (commit !== null) {
          assert.ok(commit.metadata.length <= maxMetadata)
          for (const offset of inHand) assert.ok(commit.offset <= offset, `${commit.offset} passes the unfinished ${offset}`)
          for (const offset of log) if (offset < commit.offset) assert.ok(finished.has(offset))
          assert.ok(stored === null || commit.offset >= stored.offset)
          computed = { commit, done: new Set(known) }
        } else {
          computed = null
        }
      } else if (step === 'mark' && computed !== null) {
        stored = computed.commit
        doneWhenStored = computed.done
        ledger.markCommitted(computed.commit)
        computed = null
      } else if (step === 'crash') {
        ledger = open()
        inHand = new Set()
        known = new Set(doneWhenStored)
        computed = null
        reading = stored === null ? 0 : log.findIndex((offset) => offset >= stored!.offset)
        if (reading < 0) reading = log.length
      }
      assert.equal(ledger.unfinishedCount, inHand.size)
      assert.equal(ledger.lowestUnfinished, inHand.size === 0 ? null : Math.min(...inHand))
    }
  }), { numRuns: 400 })
})

test('a span of 100,000 held by few unfinished ones stays compact, and is whole in the metadata', () => {
  const ledger = createOffsetLedger({ committedOffset: 0, metadata: null })
  const slow = new Set(Array.from({ length: 40 }, (_, i) => i * 2500))
  for (let offset = 0; offset < 100_000; offset += 1) {
    ledger.begin(offset)
    if (!slow.has(offset)) ledger.done(offset)
  }
  assert.deepEqual([ledger.unfinishedCount, ledger.span], [40, 100_000])
  const commit = ledger.commit()!
  assert.equal(commit.offset, 0)
  assert.ok(commit.metadata.length < 150, `${commit.metadata.length} characters`)
  const next = createOffsetLedger({ committedOffset: 0, metadata: commit.metadata, highOffset: 100_000 })
  for (let offset = 0; offset < 100_000; offset += 1) assert.equal(next.isDone(offset), !slow.has(offset))
})

test('many unfinished ones, finished from the top: every commit fits and is true', () => {
  const ledger = createOffsetLedger({ committedOffset: 0, metadata: null })
  for (let offset = 0; offset < 40_000; offset += 1) ledger.begin(offset)
  for (let offset = 39_999; offset > 0; offset -= 3) ledger.done(offset)
  const commit = ledger.commit()!
  assert.equal(commit.offset, 0)
  assert.ok(commit.metadata.length > 4000 && commit.metadata.length <= 4096)
  const next = createOffsetLedger({ committedOffset: commit.offset, metadata: commit.metadata })
  let kept = 0
  for (let offset = 0; offset < 40_000; offset += 1) {
    if (!next.isDone(offset)) continue
    assert.equal(offset % 3, 0)
    kept += 1
  }
  assert.ok(kept > 8000, `${kept} kept`)
})
