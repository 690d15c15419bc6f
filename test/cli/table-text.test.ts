import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alignColumns } from '../../cli/table-text.ts'

test('columns line up, numbers to the right, nothing is cut, and colours take no width', () => {
  const rows = [{ name: 'a', count: 7, note: 'x'.repeat(120) }, { name: 'longer', count: 1234, note: '' }]
  const text = alignColumns(rows, [
    { title: 'NAME', text: ({ name }) => name, paint: (name) => `<${name}>` },
    { title: 'COUNT', text: ({ count }) => String(count), align: 'right' },
    { title: 'NOTE', text: ({ note }) => note },
  ], (title) => title)
  assert.deepEqual(text.split('\n'), [
    'NAME    COUNT  NOTE',
    `<a>           7  ${'x'.repeat(120)}`,
    '<longer>   1234',
    '',
  ])
})

test('control characters of others do not reach the terminal', () => {
  const text = alignColumns([{ id: 'evt\u001b[2J\r\n1' }], [{ title: 'ID', text: ({ id }) => id }], (title) => title)
  assert.equal(text, 'ID\nevt\ufffd[2J\ufffd\ufffd1\n')
})
