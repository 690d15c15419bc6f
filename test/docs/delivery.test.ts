import assert from 'node:assert/strict'
import { test } from 'node:test'
import { corpusSize } from '../../deploy/sample/corpus.ts'
import { classify } from '../../shared/domain/classify.ts'
import { errorTable } from '../../shared/domain/error-codes.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import { attemptHeaders } from '../../shared/domain/signed-headers.ts'
import { readme } from './documents.ts'
import { codesIn, tableOf } from './markdown.ts'

/** `408, 423–425` as numbers. */
function statusesIn(cell: string): readonly number[] {
  return cell.split(',').flatMap((part) => {
    const [, from, to = from] = /^(\d{3})(?:–(\d{3}))?$/.exec(part.trim()) ?? assert.fail(`"${part}" is neither a status nor a range`)
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => Number(from) + index)
  })
}

test('the README says of every status what it means', () => {
  const written = tableOf(readme, 'Class').rows.flatMap(([name = '', statuses = '']) => statusesIn(statuses).map((status) => [status, name] as const))
  assert.equal(new Set(written.map(([status]) => status)).size, written.length, 'a status has two meanings')
  const expected = Array.from({ length: 500 }, (_, index) => 100 + index).map((status) =>
    [status, classify({ kind: 'response', status, retryAfter: [], date: null, excerpt: null }, new Map())] as const)
  assert.deepEqual([...written].sort(([a], [b]) => a - b), expected)
})

test('the README says of every error what it means before and after the request was sent', () => {
  const written = tableOf(readme, 'Error').rows.map(([error = '', before, after]) => [codesIn(error)[0], before, after])
  assert.deepEqual(written, errorTable.map((row) => [row.error, row.before_send, row.sent]))
})

test('the README has the standard schedule', () => {
  const unitMs: Readonly<Record<string, number>> = { min: 60_000, h: 3_600_000 }
  const toMs = (cell: string): number => {
    const [value, unit = ''] = cell.split(' ')
    return Math.round(Number(value) * (unitMs[unit] ?? 0) / 60_000) * 60_000
  }
  const { header, rows } = tableOf(readme, 'Attempt')
  const [waits = [], since = []] = rows.map(([, ...cells]) => cells.map(toMs))
  assert.deepEqual(header.slice(1).map(Number), Array.from({ length: defaultPolicy.maxAttempts }, (_, index) => index + 1))
  assert.deepEqual(waits, [0, ...defaultPolicy.scheduleMs])
  assert.deepEqual(since, waits.map((_, index) => waits.slice(0, index + 1).reduce((sum, wait) => sum + wait, 0)))
})

test('the README has the headers of an attempt, in their order', () => {
  const headers = attemptHeaders({
    subscription: { signatureScheme: 'stripe', headers: [], secrets: [{ secret: 'whsec_a-secret-of-the-documents', createdAt: 0, expiresAt: null }] },
    delivery: { id: 'del_1', eventType: 'order.created', body: Buffer.from('{}') }, attempt: 1, sentAt: 0, version: '1', replay: 1,
  })
  assert.deepEqual(tableOf(readme, 'Header').rows.map(([name = '']) => codesIn(name)[0]), headers.filter((_, index) => index % 2 === 0))
})

test('the README counts the events of the sample', () => {
  assert.ok(readme.text.includes(`${corpusSize} example webhooks`), `the sample has ${corpusSize}`)
})
