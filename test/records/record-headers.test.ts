import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordHeader } from '../../shared/domain/delivery.ts'
import { deadLetterHeaders, dueHeader, lastValue, parkedHeader, readDueAt, readOrigin, readParked, waitingHeaders } from '../../shared/records/record-headers.ts'
import { sampleDeadLetter } from './arbitraries.ts'

const asRead = (headers: readonly { name: string; value: string }[]): RecordHeader[] => headers.map(({ name, value }) => ({ name, value: Buffer.from(value) }))

test('due time and times parked come back', () => {
  const headers = asRead(waitingHeaders(1_700_000_000_123.2, 3))
  assert.equal(readDueAt(headers), 1_700_000_000_124)
  assert.equal(readParked(headers), 3)
  assert.equal(readParked(asRead(waitingHeaders(1, 0))), 0)
})

test('a due time that cannot be read is none, a count never grows without bound', () => {
  for (const value of ['', 'NaN', '-1', '1e3', ' 5', '5 ', '0x10', '12345678901234567890', '1.5', 'soon', '٣']) {
    assert.equal(readDueAt(asRead([{ name: dueHeader, value }])), null, value)
  }
  assert.equal(readDueAt([]), null)
  for (const [value, parked] of [['', 0], ['-1', 0], ['1.5', 0], ['999999999', 1000], ['99999999999999999999', 0], ['7', 7]] as const) {
    assert.equal(readParked(asRead([{ name: parkedHeader, value }])), parked, value)
  }
  assert.equal(readDueAt(asRead([{ name: dueHeader, value: '1' }, { name: dueHeader, value: '2' }])), 2)
})

test('a dead letter\'s facts can be read by any Kafka tool', () => {
  const headers = asRead(deadLetterHeaders(sampleDeadLetter))
  const facts = Object.fromEntries(headers.map(({ name, value }) => [name, value.toString()]))
  assert.deepEqual(facts, {
    'posthouse-delivery': 'del_abc', 'posthouse-replay': '0', 'posthouse-event': 'evt_1', 'posthouse-type': 'order.created',
    'posthouse-subscription': 'sub_abc', 'posthouse-endpoint': 'ep_abc', 'posthouse-reason': 'exhausted', 'posthouse-attempts': '1',
    'posthouse-origin': 'webhooks.events/3/42', 'posthouse-status': '503', 'posthouse-error': 'http_503',
  })
  assert.deepEqual(readOrigin(headers), { topic: 'webhooks.events', partition: 3, offset: 42 })
  for (const value of ['a/b/c', 'a/1', 'a/1/2/3', '', 'a/-1/2']) assert.equal(readOrigin(asRead([{ name: 'posthouse-origin', value }])), null, value)
  assert.equal(lastValue(headers, 'posthouse-tenant'), null)
  assert.equal(lastValue(asRead(deadLetterHeaders({ ...sampleDeadLetter, delivery: { ...sampleDeadLetter.delivery, tenant: 'acme' } })), 'posthouse-tenant'), 'acme')
})
