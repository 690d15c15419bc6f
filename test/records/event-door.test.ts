import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maxBodyAndHeadersBytes, maxBodyBytes, type Event } from '../../shared/domain/event.ts'
import { readEvent, type AtTheDoor, type DoorOptions, type InputRecord } from '../../shared/records/event-door.ts'
import { wireOf } from '../../shared/records/wire.ts'

const options: DoorOptions = { idField: 'id', tenantField: 'tenant', type: { kind: 'field', name: 'type' } }

function recordOf(value: string | Buffer | null, headers: Record<string, string | Buffer> = {}, rest: Partial<InputRecord> = {}): InputRecord {
  return {
    topic: 'orders', partition: 2, offset: 7, timestamp: 1_700_000_000_000, key: null, value: typeof value === 'string' ? Buffer.from(value) : value,
    headers: Object.entries(headers).map(([name, one]) => ({ name, value: Buffer.from(one) })), ...rest,
  }
}

function accepted(atTheDoor: AtTheDoor): Event {
  assert.equal(atTheDoor.kind, 'event', JSON.stringify(atTheDoor))
  return (atTheDoor as { event: Event }).event
}

const read = (value: string | Buffer | null, headers: Record<string, string | Buffer> = {}, changed: Partial<DoorOptions> = {}) =>
  readEvent(recordOf(value, headers), { ...options, ...changed })

const reasonOf = (atTheDoor: AtTheDoor): string => (atTheDoor.kind === 'rejected' ? atTheDoor.reason : atTheDoor.kind)

test('the body is the value, byte for byte', () => {
  const bodies = [
    '{"id":"e","type":"t","n":8202522731445525542,"neg":-9007199254740993}',
    '{"type":"t","score":0.0,"weight":136.0,"e":1E2,"z":-0,"id":"e"}',
    '{"id":"e","type":"t","name":"Sponsor 😊 é 中"}',
    '{"b":1,"10":2,"9":3,"k":1,"k":2,"__proto__":{"admin":true},"a":{},"id":"e","type":"t"}',
    '{ "b" : [1, 2],\r\n  "a" : "x, y", "id":"e" ,\t"type":"t" }\n',
    '{"id":"e","type":"t","deep":' + '['.repeat(100_000) + ']'.repeat(100_000) + '}',
  ]
  for (const body of bodies) {
    const record = recordOf(body)
    const event = accepted(readEvent(record, options))
    assert.ok(event.body.equals(record.value!), body.slice(0, 80))
    assert.deepEqual([event.id, event.type, event.tenant, event.source], ['e', 't', null, 'orders'])
  }
})

test('an event carries where it was read, its key and its headers', () => {
  const headers = [
    { name: 'traceparent', value: Buffer.from('00-1') }, { name: 'x', value: Buffer.from([0x00, 0xff]) },
    { name: 'dup', value: Buffer.from('1') }, { name: 'dup', value: Buffer.from('2') },
  ]
  const record = { ...recordOf('{"id":"e","type":"t"}'), key: Buffer.from([1, 2]), headers }
  const event = accepted(readEvent(record, options))
  assert.deepEqual(event.origin, { topic: 'orders', partition: 2, offset: 7, timestamp: 1_700_000_000_000 })
  assert.deepEqual([event.sourceKey, event.sourceHeaders], [record.key, headers])
  assert.deepEqual(accepted(readEvent(record, { ...options, keepHeaders: false })).sourceHeaders, [])
})

test('a timestamp that no record of ours could hold is no reason to refuse an event', () => {
  const nanoseconds = Number('1700000000000000000')
  const { origin } = accepted(readEvent(recordOf('{"id":"e","type":"t"}', {}, { timestamp: nanoseconds }), options))
  assert.equal(origin.timestamp, Number.MAX_SAFE_INTEGER)
})

test('an id or tenant that is a number keeps its digits as written', () => {
  const cases: [string, string][] = [
    ['{"id":8202522731445525542,"type":"t"}', '8202522731445525542'], ['{"id":8202522731445525541,"type":"t"}', '8202522731445525541'],
    ['{"type":"t","id" : -9007199254740993 }', '-9007199254740993'], ['{"id":1.0,"type":"t"}', '1.0'], ['{"id":1E2,"type":"t"}', '1E2'],
    ['{"id":0,"type":"t"}', '0'], ['{"id":1,"type":"t","id":2}', '2'], ['{"\\u0069d":12345678901234567890,"type":"t"}', '12345678901234567890'],
    ['{"a":{"id":1},"b":[{"id":2},"}",{"c":"\\"]\\\\"}],"id":3,"type":"t","d":{"id":4}}', '3'], ['{"i":1,"idd":2,"id":3\n,"type":"t"}', '3'],
  ]
  for (const [body, id] of cases) assert.equal(accepted(read(body)).id, id, body)
  assert.equal(accepted(read('{"id":"e","type":"t","tenant":9007199254740993}')).tenant, '9007199254740993')
})

test('the source of a number is found in any JSON text', () => {
  const key = fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom('id', '__proto__', 'i"d', '\\', '{', ']', ','))
  const value = fc.jsonValue({ maxDepth: 3 })
  const spaced = fc.constantFrom('', ' ', '\n\t', '\r\n ')
  fc.assert(fc.property(fc.array(fc.tuple(key, value), { maxLength: 6 }), fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }), spaced, fc.nat({ max: 6 }), (members, id, space, at) => {
    const texts = members.filter(([name]) => name !== 'id').map(([name, one]) => `${JSON.stringify(name)}${space}:${space}${JSON.stringify(one)}`)
    texts.splice(at, 0, `"id"${space}:${space}${id}`)
    const body = `${space}{${space}${texts.join(`${space},${space}`)}${space}}${space}`
    assert.equal(accepted(read(body, {}, { type: { kind: 'constant', value: 't' } })).id, String(id))
  }), { numRuns: 1000 })
})

test('fields are own members: top-level names, or paths joined by dots', () => {
  const nested = { idField: 'meta.event.id', tenantField: 'meta.tenant', type: { kind: 'field', name: 'meta.type' } } as const
  const event = accepted(read('{"meta":{"event":{"id":12345678901234567890},"tenant":"acme","type":"a.b"}}', {}, nested))
  assert.deepEqual([event.id, event.tenant, event.type], ['12345678901234567890', 'acme', 'a.b'])
  // A member that has the dotted name itself comes first.
  assert.equal(accepted(read('{"meta.event.id":77,"meta":{"event":{"id":1},"type":"t"}}', {}, nested)).id, '77')
  assert.equal(reasonOf(read('{"meta":[{"id":1}],"id":"e"}', {}, nested)), 'no_id')
  for (const name of ['__proto__', 'constructor', 'toString', 'length']) {
    assert.equal(reasonOf(read('{"type":"t"}', {}, { idField: name })), 'no_id', name)
    assert.equal(reasonOf(read('{"type":"t"}', {}, { idField: `${name}.name` })), 'no_id', name)
  }
  assert.equal(reasonOf(read('{"__proto__":{"id":"inherited","type":"t"}}')), 'no_id')
  assert.equal(accepted(read('{"__proto__":"own","type":"t"}', {}, { idField: '__proto__' })).id, 'own')
  assert.equal(reasonOf(read('[1,2]', {}, { idField: '0', type: { kind: 'constant', value: 't' } })), 'no_id')
})

test('headers win over fields, CloudEvents before ours, an empty one is none, the last of repeated ones counts', () => {
  const body = '{"id":"field","type":"field.type","tenant":"field-tenant"}'
  const both = accepted(read(body, { 'ce_id': 'ce', 'ce_type': 'ce.type', 'ce_source': '/shop', 'event-id': 'ours', 'event-type': 'our.type', 'event-tenant': 'acme' }))
  assert.deepEqual([both.id, both.type, both.tenant, both.source], ['ce', 'ce.type', 'acme', '/shop'])
  const ours = accepted(read(body, { 'event-id': 'ours', 'ce_id': '', 'ce_type': '' }))
  assert.deepEqual([ours.id, ours.type, ours.tenant, ours.source], ['ours', 'field.type', 'field-tenant', 'orders'])
  const repeated = { ...recordOf(body), headers: ['1', '2'].map((one) => ({ name: 'ce_id', value: Buffer.from(one) })) }
  assert.equal(accepted(readEvent(repeated, options)).id, '2')
  // Any JSON is a body then.
  for (const value of ['null', '""', '0', '[]', ' true ']) {
    assert.equal(accepted(read(value, { 'event-id': 'e', 'event-type': 't' })).body.toString(), value)
  }
  assert.equal(reasonOf(read(body, { ce_id: Buffer.from([0x61, 0xff]) })), 'bad_header')
  assert.equal(reasonOf(read('not json', { ce_id: 'e', ce_type: 't' })), 'not_json')
})

test('a constant type or the topic\'s name stands for a type in no header', () => {
  const body = '{"id":"e","type":"field"}'
  assert.equal(accepted(read(body, {}, { type: { kind: 'constant', value: 'const' } })).type, 'const')
  assert.equal(accepted(read(body, {}, { type: { kind: 'topic' } })).type, 'orders')
  assert.equal(accepted(read(body, { ce_type: 'header' }, { type: { kind: 'topic' } })).type, 'header')
})

test('a null value is skipped, everything that is no event is refused with its reason', () => {
  assert.deepEqual(read(null), { kind: 'skipped', reason: 'null_value' })
  const valid = '{"id":"e","type":"t"}'
  const cases: [string, string | Buffer, Record<string, string>?][] = [
    ['not_json', ''], ['not_json', '  '], ['not_json', '{"a":'], ['not_json', 'undefined'], ['not_json', `${valid}{}`], ['not_json', '{"id":NaN,"type":"t"}'],
    ['byte_order_mark', `\ufeff${valid}`], ['not_utf8', Buffer.from([0xc3])], ['not_json', Buffer.from(valid, 'utf16le')], ['not_utf8', Buffer.from(`{"id":"é","type":"t"}`, 'latin1')],
    ['no_id', 'null'], ['no_id', '""'], ['no_id', '{"type":"t"}'], ['no_id', '{"id":null,"type":"t"}'], ['no_id', '{"id":"","type":"t"}'],
    ['bad_id', '{"id":{},"type":"t"}'], ['bad_id', '{"id":true,"type":"t"}'], ['bad_id', `{"id":"${'x'.repeat(1025)}","type":"t"}`],
    ['no_type', '{"id":"e"}'], ['no_type', '{"id":"e","type":null}'], ['bad_type', '{"id":"e","type":["t"]}'], ['bad_type', '{"id":"e","type":""}'],
    ['bad_type', '{"id":"e","type":"заказ.создан"}'], ['bad_type', '{"id":"e","type":"café.paid"}'], ['bad_type', '{"id":"e","type":"a b"}'],
    ['bad_type', '{"id":"e","type":"a\\r\\nX-Injected: 1"}'], ['bad_type', `{"id":"e","type":"${'t'.repeat(9000)}"}`], ['bad_type', '{"id":"e","type":"posthouse.x"}'],
    ['bad_type', valid, { ce_type: 'é' }],
    ['bad_tenant', '{"id":"e","type":"t","tenant":{}}'], ['bad_tenant', '{"id":"e","type":"t","tenant":""}'], ['bad_tenant', '{"id":"e","type":"t","tenant":false}'],
    ['bad_tenant', valid, { 'event-tenant': 'x'.repeat(257) }],
    ['no_schema_registry', Buffer.from([0, 0])], ['no_schema_registry', Buffer.from([0, 0, 0, 0, 1, 2, 2])],
    ['unknown_schema', Buffer.concat([Buffer.from([0xc3, 0x01]), Buffer.alloc(8), Buffer.from('x')])],
    ['unreadable_avro', Buffer.from([0xc3, 0x01])], ['unreadable_avro', Buffer.from([0xc3, 0x01, 1, 2, 3])],
  ]
  for (const [reason, value, headers] of cases) {
    const atTheDoor = read(value, headers)
    assert.equal(reasonOf(atTheDoor), reason, String(value).slice(0, 60))
    assert.ok(atTheDoor.kind === 'rejected' && atTheDoor.detail.length > 10)
  }
})

test('a reason says nothing of the payload', () => {
  for (const value of ['{"card":"4111111111111111"', '{"id":"4111111111111111","type":"4111111111111111 é"}', '4111111111111111x']) {
    assert.doesNotMatch(JSON.stringify(read(value)), /4111/)
  }
})

test('sizes have limits, so that every later record of a delivery fits', () => {
  const ofSize = (bytes: number) => `{"id":"e","type":"t","x":"${'x'.repeat(bytes - 28)}"}`.replace('"x":"x', '"x":"xx').slice(0, bytes - 2) + '"}'
  const largest = ofSize(maxBodyBytes)
  assert.equal(Buffer.byteLength(largest), maxBodyBytes)
  assert.equal(accepted(read(largest)).body.length, maxBodyBytes)
  assert.equal(reasonOf(read(ofSize(maxBodyBytes + 1))), 'too_large')
  const room = maxBodyAndHeadersBytes - maxBodyBytes
  assert.equal(read(largest, { h: Buffer.alloc(room - 11) }).kind, 'event')
  assert.equal(reasonOf(read(largest, { h: Buffer.alloc(room) })), 'too_large')
  assert.equal(reasonOf(readEvent(recordOf(largest, {}, { key: Buffer.alloc(room + 1) }), options)), 'too_large')
  assert.equal(read(largest, { h: Buffer.alloc(room) }, { keepHeaders: false }).kind, 'event')
  const many = { ...recordOf(largest), headers: Array.from({ length: 20_000 }, () => ({ name: '', value: Buffer.alloc(0) })) }
  assert.equal(reasonOf(readEvent(many, options)), 'too_large', 'empty headers cost too')
})

test('an Avro event gives a body with the text of its data untouched', () => {
  const avro = wireOf('event')
  const event = (fields: object) => avro.write({ id: 'evt_"1"', type: 'order.created', created: 1_548_892_800, tenant: null, data: '{}', ...fields }, 100)
  const data = ' {"n":9007199254740993,"w":136.0, "é":"🙄", "k":1,"k":2}\n'
  const plain = accepted(read(event({ data })))
  assert.equal(plain.body.toString(), `{"id":"evt_\\"1\\"","type":"order.created","created":1548892800,"data":${data}}`)
  assert.deepEqual([plain.id, plain.type, plain.tenant], ['evt_"1"', 'order.created', null])
  assert.equal((JSON.parse(plain.body.toString()) as { id: string }).id, 'evt_"1"')
  // What wins for the delivery stands in the body too, so that a receiver never sees two ids.
  const named = accepted(read(event({ tenant: 'acme' }), { ce_id: 'ce', ce_type: 'ce.type' }))
  assert.deepEqual([named.id, named.tenant, named.body.toString()], ['ce', 'acme', '{"id":"ce","type":"ce.type","created":1548892800,"data":{}}'])
  // Field names of JSON events do not apply, the configured type does.
  assert.equal(accepted(read(event({}), {}, { idField: 'other', tenantField: 'x', type: { kind: 'field', name: 'y' } })).type, 'order.created')
  assert.equal(accepted(read(event({}), {}, { type: { kind: 'topic' } })).type, 'orders')

  const refused: [string, Buffer][] = [
    ['not_json', event({ data: '' })], ['not_json', event({ data: '{"a":' })], ['not_json', event({ data: '1}, "x":{' })], ['byte_order_mark', event({ data: '\ufeff{}' })],
    ['no_id', event({ id: '' })], ['bad_type', event({ type: 'é' })], ['bad_tenant', event({ tenant: '' })],
    ['too_large', event({ data: JSON.stringify('x'.repeat(maxBodyBytes)) })], ['unreadable_avro', event({}).subarray(0, -1)],
  ]
  for (const [reason, value] of refused) assert.equal(reasonOf(read(value)), reason)
  const notUtf8 = event({ data: '"xyz"' })
  notUtf8[notUtf8.length - 2] = 0xff
  assert.equal(reasonOf(read(notUtf8)), 'unreadable_avro')
})

test('whatever the bytes and headers are, the door answers', () => {
  const value = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.concat([wireOf('event').write({ id: '', type: '', created: 0, data: '' }, 1).subarray(0, 10), bytes])),
    fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text)),
  )
  const headers = fc.array(fc.tuple(fc.constantFrom('ce_id', 'event-id', 'ce_type', 'event-tenant', '__proto__'), fc.uint8Array({ maxLength: 5 })), { maxLength: 4 })
  fc.assert(fc.property(value, headers, (bytes, list) => {
    const record = { ...recordOf(bytes), headers: list.map(([name, one]) => ({ name, value: Buffer.from(one) })) }
    assert.ok(['event', 'rejected'].includes(readEvent(record, options).kind))
  }), { numRuns: 3000 })
})
