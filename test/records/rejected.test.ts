import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordHeader } from '../../shared/domain/delivery.ts'
import { maxRejectedBytes } from '../../shared/domain/event.ts'
import { lastValue, readOrigin } from '../../shared/records/record-headers.ts'
import { rejectedRecord, type SourceRecord } from '../../shared/records/rejected.ts'

const source: SourceRecord = {
  topic: 'orders', partition: 2, offset: 7, key: Buffer.from([0, 1]), value: Buffer.from([0xff, 0x00, 0x7b]),
  headers: [{ name: 'x', value: Buffer.from([0x00, 0xff]) }, { name: 'dup', value: Buffer.from('1') }, { name: 'dup', value: Buffer.from('2') }],
}
const reject = (changed: Partial<SourceRecord> = {}, detail = 'why') =>
  rejectedRecord({ topic: 'webhooks.rejected', record: { ...source, ...changed }, reason: 'not_json', detail })
const asRead = (headers: readonly { name: string; value: Buffer | string }[]): RecordHeader[] => headers.map(({ name, value }) => ({ name, value: Buffer.from(value) }))

test('a refused record is kept as it was, with reason and place', () => {
  const rejected = reject()
  assert.deepEqual([rejected.topic, rejected.key, rejected.value], ['webhooks.rejected', source.key, source.value])
  assert.deepEqual(rejected.headers.slice(0, 3), source.headers)
  const headers = asRead(rejected.headers)
  assert.equal(lastValue(headers, 'posthouse-reason'), 'not_json')
  assert.equal(lastValue(headers, 'posthouse-detail'), 'why')
  assert.deepEqual(readOrigin(headers), { topic: 'orders', partition: 2, offset: 7 })
  assert.equal(rejected.headers.length, 6)
  assert.equal(reject({ value: null }).value, null)
})

test('headers that a record brings along do not pass for ours', () => {
  const headers = asRead(reject({ headers: [{ name: 'posthouse-reason', value: Buffer.from('forged') }, { name: 'posthouse-origin', value: Buffer.from('a/1/1') }] }).headers)
  assert.equal(lastValue(headers, 'posthouse-reason'), 'not_json')
  assert.equal(readOrigin(headers)?.topic, 'orders')
  assert.equal(headers.filter(({ name }) => name === 'posthouse-reason').length, 2, 'kept all the same')
})

test('a record of any size becomes one that fits, and says what was cut', () => {
  const large = reject({
    key: Buffer.alloc(5_000_000, 'k'), value: Buffer.alloc(8_000_000, 'v'),
    headers: [{ name: 'huge', value: Buffer.alloc(4_000_000) }, ...Array.from({ length: 60_000 }, () => ({ name: '', value: Buffer.alloc(0) })), { name: 'a', value: Buffer.from('1') }],
  }, 'd'.repeat(100_000))
  const headers = asRead(large.headers)
  assert.equal(large.value!.length, maxRejectedBytes)
  assert.equal(lastValue(headers, 'posthouse-original-bytes'), '8000000')
  assert.equal(lastValue(headers, 'posthouse-original-key-bytes'), '5000000')
  assert.ok(Number(lastValue(headers, 'posthouse-headers-left-out')) > 1)
  const size = large.key!.length + large.value!.length + headers.reduce((sum, { name, value }) => sum + name.length + value.length + 10, 0)
  assert.ok(size < 1_000_000, `${size} bytes`)
  assert.equal(lastValue(asRead(reject({ value: Buffer.alloc(maxRejectedBytes) }).headers), 'posthouse-original-bytes'), null)
})
