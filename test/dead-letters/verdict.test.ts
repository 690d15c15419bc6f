import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter } from '../../shared/domain/delivery.ts'
import { createMatcher, factsFromHeaders, factsOf, isEverything, type DeadLetterFilter } from '../../shared/dead-letters/filter.ts'
import { parseDeadLetterKey } from '../../shared/dead-letters/key.ts'
import type { FoundDeadLetter } from '../../shared/dead-letters/scan.ts'
import { readClearing, tombstone } from '../../shared/dead-letters/tombstone.ts'
import { judgeReplay, type VerdictInput } from '../../shared/dead-letters/verdict.ts'
import { fitDeadLetter, keepsRequest } from '../../shared/records/dead-letter-fit.ts'
import { deadLetterHeaders } from '../../shared/records/record-headers.ts'
import { idOf, letterOf, subscriptionOf, type LetterOptions } from './lab.ts'

const letter = letterOf('one', {
  reason: 'exhausted', endpointKey: 'ep_1', lastStatus: 503, lastError: 'http_503', diedAt: 5_000,
  delivery: { replay: 2, tenant: 'acme', eventType: 'order.created' },
})

test('a filter lets through what every part of it holds for', () => {
  const through: DeadLetterFilter[] = [
    {}, { ids: [idOf('one')] }, { ids: [`${idOf('one')}.2`, 'del_other'] }, { endpointKey: 'ep_1' }, { subscriptionId: 'sub_a' }, { tenant: 'acme' },
    { eventId: 'evt_one' }, { eventType: 'order.*' }, { eventType: 'order.created' }, { reason: 'exhausted' }, { status: 503 }, { error: 'http_503' },
    { since: 5_000 }, { until: 5_001 }, { reason: 'exhausted', status: 503, tenant: 'acme', since: 4_000, until: 6_000 },
  ]
  const notThrough: DeadLetterFilter[] = [
    { ids: [] }, { ids: [`${idOf('one')}.1`] }, { endpointKey: 'ep_2' }, { subscriptionId: 'sub_b' }, { tenant: 'other' }, { eventId: 'evt_two' },
    { eventType: 'order' }, { eventType: 'paid.*' }, { reason: 'gone' }, { status: 500 }, { error: 'timeout' }, { since: 5_001 }, { until: 5_000 },
    { reason: 'exhausted', status: 500 },
  ]
  const facts = factsOf(letter)
  const fromHeaders = factsFromHeaders(parseDeadLetterKey(`${idOf('one')}.2`)!, deadLetterHeaders(letter).map(({ name, value }) => ({ name, value: Buffer.from(value) })), 5_000)
  assert.deepEqual(fromHeaders, facts, 'headers say the same as the value')
  for (const filter of through) assert.ok(createMatcher(filter)(facts), JSON.stringify(filter))
  for (const filter of notThrough) assert.ok(!createMatcher(filter)(facts), JSON.stringify(filter))
  const withoutTenant = factsOf(letterOf('two', { lastStatus: null }))
  assert.ok(!createMatcher({ tenant: 'acme' })(withoutTenant))
  assert.ok(!createMatcher({ status: 503 })(withoutTenant))
  assert.ok(isEverything({}))
  assert.ok(!isEverything({ until: 0 }))
})

test('a key is a delivery id and a replay number; a delivery id alone is none', () => {
  assert.deepEqual(parseDeadLetterKey('del_abc.12'), { deliveryId: 'del_abc', replay: 12 })
  for (const text of ['del_abc', 'del_abc.', '.1', 'del_abc.x', 'del_abc.-1', 'del_a.b.1', '']) assert.equal(parseDeadLetterKey(text), null, text)
})

test('a tombstone says how it came about', () => {
  const bytesOf = (record: ReturnType<typeof tombstone>) => (record.headers ?? []).map(({ name, value }) => ({ name, value: Buffer.from(value) }))
  const id = { deliveryId: 'del_a', replay: 1 }
  const replayed = tombstone('dlq', id, { how: 'replayed', asReplay: 2 })
  assert.deepEqual([replayed.key, replayed.value, replayed.topic], ['del_a.1', null, 'dlq'])
  assert.deepEqual(readClearing(bytesOf(replayed)), { how: 'replayed', asReplay: 2 })
  assert.deepEqual(readClearing(bytesOf(tombstone('dlq', id, { how: 'discarded' }))), { how: 'discarded' })
  assert.equal(readClearing([]), null)
})

const found = (deadLetter: DeadLetter, overrides: Partial<FoundDeadLetter> = {}): FoundDeadLetter => ({
  id: { deliveryId: deadLetter.delivery.id, replay: deadLetter.delivery.replay }, partition: 0, offset: 0, writtenAt: 0,
  facts: factsOf(deadLetter), standing: { kind: 'open' }, content: { kind: 'readable', deadLetter }, ...overrides,
})
const judge = (options: LetterOptions, input: Partial<VerdictInput> = {}) => judgeReplay({
  letter: found(letterOf('x', options)), subscription: subscriptionOf('sub_a'), goneAt: null, clearing: null, forcedReplay: null, routedAt: 77, ...input,
})
const reasonOf = (verdict: ReturnType<typeof judgeReplay>): string => (verdict.kind === 'refused' ? verdict.reason : verdict.kind)

test('a replay is the same delivery, its attempts and its age begun anew', () => {
  const deadLetter = letterOf('x', { delivery: { replay: 3, attemptsMade: 8, routedAt: 1 } })
  const verdict = judgeReplay({ letter: found(deadLetter), subscription: subscriptionOf('sub_a'), goneAt: null, clearing: null, forcedReplay: null, routedAt: 77 })
  assert.ok(verdict.kind === 'replay')
  assert.deepEqual(verdict.delivery, { ...deadLetter.delivery, replay: 4, routedAt: 77, attemptsMade: 0, attempts: [], lastWaitMs: 0 })
  assert.equal(verdict.delivery.body, deadLetter.delivery.body)
})

test('what would be cancelled, or dead again at once, is refused', () => {
  const gone = { goneAt: 1_000 }
  assert.equal(reasonOf(judge({})), 'replay')
  for (const reason of ['expired', 'internal', 'permanent_failure', 'disabled', 'gone'] as const) assert.equal(reasonOf(judge({ reason })), 'replay')
  assert.equal(reasonOf(judge({}, { subscription: subscriptionOf('sub_a', { state: 'paused' }) })), 'replay')
  assert.equal(reasonOf(judge({}, { subscription: 'deleted' })), 'subscription_deleted')
  assert.equal(reasonOf(judge({}, { subscription: undefined })), 'subscription_unknown')
  assert.equal(reasonOf(judge({}, { subscription: 'newer' })), 'subscription_newer')
  assert.equal(reasonOf(judge({}, { subscription: subscriptionOf('sub_a', { state: 'disabled' }) })), 'subscription_disabled')
  assert.equal(reasonOf(judge({}, { subscription: subscriptionOf('sub_a', { tenant: 'other' }) })), 'tenant_differs')
  assert.equal(reasonOf(judge({}, gone)), 'endpoint_gone')
  assert.equal(reasonOf(judge({}, { ...gone, subscription: subscriptionOf('sub_a', { appendedAt: 1_001 }) })), 'replay', 'written again since')
  for (const kind of ['newer', 'unreadable'] as const) {
    assert.equal(reasonOf(judge({}, { letter: found(letterOf('x'), { content: { kind, detail: 'why' } }) })), kind)
  }
})

test('a dead letter that was shortened is still whole in what is sent; what else may have been left out is not believed to be', () => {
  const large = letterOf('large', { delivery: { sourceHeaders: [{ name: 'x', value: Buffer.alloc(400_000) }], sourceKey: Buffer.alloc(100_000), body: Buffer.alloc(500_000) } })
  const fitted = fitDeadLetter(large)
  assert.match(fitted.shortened ?? '', /no source headers/)
  assert.equal(reasonOf(judge({ shortened: fitted.shortened })), 'replay')
  assert.equal(reasonOf(judge({ shortened: `${fitted.shortened}, half of the body` })), 'incomplete')
  assert.ok(keepsRequest(null) && keepsRequest('excerpts cut') && !keepsRequest(''))
})

test('what was replayed or discarded is refused, unless it is forced; what an interrupted replay left is only cleared', () => {
  const letterIs = (standing: FoundDeadLetter['standing']) => ({ letter: found(letterOf('x', { delivery: { replay: 1 } }), { standing }) })
  const cleared = letterIs({ kind: 'cleared', tombstoneOffset: 9 })
  assert.equal(reasonOf(judge({}, { ...cleared, clearing: { how: 'replayed', asReplay: 2 } })), 'already_replayed')
  assert.equal(reasonOf(judge({}, { ...cleared, clearing: { how: 'discarded' } })), 'already_discarded')
  const forced = judge({}, { ...cleared, forcedReplay: 1_700_000_000 })
  assert.equal(forced.kind === 'replay' && forced.delivery.replay, 1_700_000_000, 'above what it ever had, or delivery would take it for a repeat')
  const superseded = letterIs({ kind: 'superseded', byReplay: 2 })
  assert.deepEqual(judge({}, superseded), { kind: 'leftover', asReplay: 2 })
  assert.equal(reasonOf(judge({}, { ...superseded, forcedReplay: 1_700_000_000 })), 'replay')
  const open = judge({ delivery: { replay: 1 } }, { forcedReplay: 1_700_000_000 })
  assert.equal(open.kind === 'replay' && open.delivery.replay, 2, 'what is open needs no force, and gets its usual number')
})
