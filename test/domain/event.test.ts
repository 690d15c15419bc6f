import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkEventType } from '../../shared/domain/event.ts'

test('an event type is printable ASCII without spaces', () => {
  for (const type of ['order.paid', 'a', '__proto__', 'constructor', 'User.Update', 'a*b', 'posthouse', 'posthousex.y', '!~', 'x'.repeat(256)]) {
    assert.equal(checkEventType(type), null, type)
  }
})

test('what a header cannot carry for sure is refused with a reason', () => {
  const refused: [string, RegExp][] = [
    ['', /empty/], ['a b', /ASCII/], ['café.paid', /ASCII/], ['заказ.создан', /ASCII/], ['a\r\nX-Injected: 1', /ASCII/], ['a\n', /ASCII/], ['a\u007f', /ASCII/], ['a\u0000', /ASCII/],
    ['x'.repeat(257), /256/], ['posthouse.endpoint.unhealthy', /reserved/], ['posthouse.', /reserved/],
  ]
  for (const [type, reason] of refused) assert.match(checkEventType(type) ?? 'accepted', reason, type)
})
