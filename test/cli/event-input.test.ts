import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitEvents } from '../../cli/event-input.ts'

test('one JSON text is one event, else every line is one; the bytes stay', () => {
  const texts = (text: string) => splitEvents(Buffer.from(text), 'events.json').map(String)
  assert.deepEqual(texts('{"id":"é",\n"n":1.0}\n'), ['{"id":"é",\n"n":1.0}'])
  assert.deepEqual(texts('{"id":"1"}\r\n\n {"id":"2"}'), ['{"id":"1"}', '{"id":"2"}'])
  assert.throws(() => texts('{"id":"1"}\n{oh'), /line 2, is not JSON/)
  assert.throws(() => texts(' \n'), /is empty/)
})

test('what is not UTF-8 is refused: replacement characters would be sent in its place', () => {
  assert.throws(() => splitEvents(Buffer.from('{"name":"Jos\u00e9"}', 'latin1'), 'events.json'), /events\.json is not UTF-8/)
})
