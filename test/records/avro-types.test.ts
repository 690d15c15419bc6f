import assert from 'node:assert/strict'
import { test } from 'node:test'
import type avsc from 'avsc'
import fc from 'fast-check'
import { compileSchema, readLongExactly } from '../../shared/records/avro-types.ts'

const hex = (text: string) => Buffer.from(text, 'hex')
const long = compileSchema('long')

test('a long is exact over the whole safe range, both ways', () => {
  const edges = [0, -1, 1, 63, 64, -64, -65, 2 ** 31, -(2 ** 31), 2 ** 48, 2 ** 49, -(2 ** 49), 2 ** 52 - 1, 2 ** 52, -(2 ** 52), -(2 ** 52) - 1, 2 ** 53 - 1, -(2 ** 53) + 1]
  const check = (value: number) => {
    const bytes = long.toBuffer(value)
    assert.equal(readLongExactly(bytes, 0, bytes.length), BigInt(value))
    assert.equal(long.fromBuffer(bytes), value)
  }
  for (const edge of edges) check(edge)
  fc.assert(fc.property(fc.maxSafeInteger(), (value) => check(value === 0 ? 0 : value)), { numRuns: 2000 })
})

test('a long that a number cannot hold is refused, never rounded', () => {
  // 2^53 + 1, 2^63 - 1, -2^63, -2^53.
  for (const bytes of ['8280808080808020', 'feffffffffffffffff01', 'ffffffffffffffffff01', 'ffffffffffffff1f']) {
    assert.throws(() => long.fromBuffer(hex(bytes)) as unknown, /beyond|more than/, bytes)
  }
  assert.throws(() => long.fromBuffer(hex('80808080808080808002')) as unknown, /more than 64 bits/)
  assert.throws(() => long.fromBuffer(hex('8080808080808080808001')) as unknown, /more than 64 bits/)
  assert.equal(readLongExactly(hex('8280808080808020'), 0, 8), 9007199254740993n)
  assert.equal(readLongExactly(hex('feffffffffffffffff01'), 0, 10), 2n ** 63n - 1n)
  assert.equal(readLongExactly(hex('ffffffffffffffffff01'), 0, 10), -(2n ** 63n))
})

test('a long that does not end is refused without being gathered', () => {
  let looks = 0
  const endless = new Proxy(Buffer.alloc(0), { get: () => { looks += 1; return 0xff } })
  assert.throws(() => readLongExactly(endless, 0, 100_000), /more than 64 bits/)
  assert.ok(looks < 100, `${looks} bytes were looked at`)
})

test('a long is exact in every spelling of its type', () => {
  for (const schema of ['long', { type: 'long' }, { type: 'long', logicalType: 'timestamp-millis' }, ['null', 'long'], { type: 'array', items: { type: 'long' } }] as avsc.Schema[]) {
    const type = compileSchema(schema)
    const value = Array.isArray(schema) || typeof schema === 'string' || !('items' in schema) ? 2 ** 53 - 1 : [2 ** 53 - 1]
    assert.deepEqual(type.fromBuffer(type.toBuffer(value)), value, JSON.stringify(schema))
  }
})

test('an int has 32 bits', () => {
  const int = compileSchema('int')
  for (const value of [0, -1, 2 ** 31 - 1, -(2 ** 31)]) assert.equal(int.fromBuffer(int.toBuffer(value)), value)
  assert.throws(() => int.fromBuffer(long.toBuffer(2 ** 31)) as unknown, /32 bits/)
  assert.throws(() => int.toBuffer(2 ** 31))
})

test('counts and lengths that cannot be end at once', () => {
  const huge = long.toBuffer(2 ** 52)
  const cases: [avsc.Schema, Buffer][] = [
    [{ type: 'array', items: 'long' }, huge],
    // A block of -2^40 items, with a size.
    [{ type: 'array', items: 'string' }, Buffer.concat([long.toBuffer(-(2 ** 40)), long.toBuffer(8), Buffer.alloc(64)])],
    [{ type: 'array', items: 'long' }, long.toBuffer(2 ** 31)],
    ['bytes', Buffer.concat([huge, Buffer.alloc(10)])], ['bytes', Buffer.concat([long.toBuffer(-5), Buffer.alloc(10)])],
    ['string', Buffer.concat([huge, Buffer.alloc(10)])], ['string', Buffer.concat([long.toBuffer(-5), Buffer.alloc(10)])],
  ]
  for (const [schema, bytes] of cases) {
    const startedAt = process.cpuUsage().user
    assert.throws(() => compileSchema(schema).fromBuffer(bytes) as unknown, JSON.stringify(schema))
    assert.ok(process.cpuUsage().user - startedAt < 1_000_000, 'less than a second of CPU, not hours')
  }
})

test('skipping what a reader does not want is bounded too', () => {
  const reader = compileSchema({ type: 'record', name: 'R', fields: [{ name: 'last', type: 'int' }] })
  const writer = compileSchema({ type: 'record', name: 'R', fields: [{ name: 'skipped', type: { type: 'array', items: 'long' } }, { name: 'last', type: 'int' }] })
  const resolver = reader.createResolver(writer)
  assert.deepEqual(reader.fromBuffer(writer.toBuffer({ skipped: [1, 2 ** 50], last: 3 }), resolver), { last: 3 })
  // Two blocks, the second with its size.
  assert.deepEqual(reader.fromBuffer(hex('0202030204020006'), resolver), { last: 3 })
  assert.throws(() => reader.fromBuffer(Buffer.concat([long.toBuffer(2 ** 50), Buffer.alloc(4)]), resolver) as unknown, /more items than bytes/)
  // A block of one item whose size is -3 or -2^48: avsc alone would go back there, and read it for ever.
  for (const size of ['05', 'ffffffffffff3f']) assert.deepEqual(reader.fromBuffer(hex(`01${size}080006`), resolver), { last: 3 })
})

test('arrays may come in blocks', () => {
  const array = compileSchema({ type: 'array', items: 'int' })
  assert.deepEqual(array.fromBuffer(hex('02020304040600')), [1, 2, 3])
})

test('a string is UTF-8 or refused; one that holds a replacement character is fine', () => {
  const string = compileSchema('string')
  for (const bytes of ['04c328', '06eda080', '02ff', '0661ff62']) assert.throws(() => string.fromBuffer(hex(bytes)) as unknown, /not UTF-8/, bytes)
  for (const text of ['\ufffd', 'é\ufffd🙄', `${'x'.repeat(100)}\ufffd`]) assert.equal(string.fromBuffer(string.toBuffer(text)), text)
})

test('text survives whatever its characters', () => {
  const string = compileSchema('string')
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
    assert.equal(string.fromBuffer(string.toBuffer(text)), text)
    assert.ok(string.toBuffer(text).subarray(text.length > 0 ? -Buffer.byteLength(text) : 1).equals(Buffer.from(text)), 'as UTF-8')
  }), { numRuns: 2000 })
})
