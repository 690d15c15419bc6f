import assert from 'node:assert/strict'
import { test } from 'node:test'
import avsc from 'avsc'
import { compile, type SchemaSource } from '../../shared/records/avro.ts'
import { canonicalForm } from '../../shared/records/canonical-form.ts'
import { fingerprintOf } from '../../shared/records/fingerprint.ts'
import { createWire, loadSchemas } from '../../shared/records/wire.ts'
import { sampleDeadLetter, sampleDelivery } from './arbitraries.ts'

type Field = { name: string; type: unknown; doc?: string; default?: unknown }
type RecordSchema = { type: 'record'; name: string; doc?: string; fields: Field[] }

const sources = loadSchemas(new URL('../../schemas/', import.meta.url))
const schemaOf = (record: string) => sources.find((one) => one.record === record && one.isPresent)!.schema as RecordSchema

test('fingerprints are those of the Avro specification', () => {
  const vectors: [string, bigint][] = [
    ['"int"', 0x7275d51a3f395c8fn], ['"null"', 0x63dd24e7cc258f8an], ['"string"', 0x8f014872634503c7n], ['"boolean"', 0x9f42fc78a4d4f764n],
    ['"long"', 0xd054e14493f41db7n], ['"bytes"', 0x4fc016dac3201965n], ['"float"', 0x4d7c02cb3ea8d790n], ['"double"', 0x8e7535c032ab957en],
  ]
  for (const [schema, fingerprint] of vectors) {
    assert.equal(fingerprintOf(schema), fingerprint, schema)
    assert.equal(fingerprintOf(canonicalForm({ type: JSON.parse(schema) as string, doc: 'x' })), fingerprint, `${schema} as an object`)
  }
})

test('the canonical form keeps names in full and leaves out what does not change the bytes', () => {
  const cases: [unknown, string][] = [
    [{ type: { type: 'string', logicalType: 'uuid' } }, '"string"'],
    [['null', { type: 'int' }], '["null","int"]'],
    [{ items: 'long', type: 'array', default: [] }, '{"type":"array","items":"long"}'],
    [{ values: { type: 'bytes' }, type: 'map' }, '{"type":"map","values":"bytes"}'],
    [{ type: 'fixed', size: 16, name: 'Md5', namespace: 'a.b', aliases: ['x'] }, '{"name":"a.b.Md5","type":"fixed","size":16}'],
    [{ type: 'enum', symbols: ['A', 'B'], name: 'x.E', namespace: 'ignored', doc: 'd' }, '{"name":"x.E","type":"enum","symbols":["A","B"]}'],
    [
      { type: 'record', name: 'R', namespace: 'n', fields: [
        { name: 'a', type: { type: 'record', name: 'm.S', fields: [{ name: 'self', type: ['null', 'S'], default: null, doc: 'd', order: 'ignore' }] } },
        { name: 'b', type: 'R', aliases: ['c'] },
      ] },
      '{"name":"n.R","type":"record","fields":[{"name":"a","type":{"name":"m.S","type":"record","fields":[{"name":"self","type":["null","m.S"]}]}},{"name":"b","type":"n.R"}]}',
    ],
    [{ type: 'record', name: 'R', fields: [] }, '{"name":"R","type":"record","fields":[]}'],
  ]
  for (const [schema, form] of cases) assert.equal(canonicalForm(schema), form)
})

test('our schemas have the canonical form that avsc gives them', () => {
  for (const { record, schema } of sources) {
    assert.equal(canonicalForm(schema), JSON.stringify(avsc.Type.forSchema(schema as avsc.Schema).schema()), record)
  }
})

test('every field says what it is, and every union is "null" and one type with null as its default', () => {
  assert.deepEqual(sources.map(({ record }) => record).sort(), ['attempt', 'dead-letter', 'delivery', 'endpoint-health', 'event', 'subscription'])
  for (const { record, schema } of sources) {
    for (const { name, doc, type, default: fallback } of fieldsOf(schema)) {
      assert.ok(doc, `${record}: ${name} has a doc`)
      if (!Array.isArray(type)) continue
      assert.equal(type.length, 2, `${record}: ${name}`)
      assert.equal(type[0], 'null', `${record}: ${name}`)
      assert.equal(fallback, null, `${record}: ${name}`)
    }
  }
})

test('a dead letter holds a delivery as `deliveries` does', () => {
  assert.deepEqual({ ...schemaOf('dead-letter').fields[0]!.type as object, namespace: 'posthouse' }, schemaOf('delivery'))
})

test('present schemas are what was written before: a change of the bytes is a new file beside the old one', () => {
  const fingerprints = Object.fromEntries(sources.map((source) => [source.record, compile(source).fingerprint.toString(16)]))
  assert.deepEqual(fingerprints, {
    'attempt': '98ce6db9aa874068', 'dead-letter': '1f1cec259c750e39', 'delivery': '84a59cb6ffc7fc90',
    'endpoint-health': 'bd6943895cde20e1', 'event': 'cf0231bb88020905', 'subscription': 'd968574d0901c1da',
  })
})

test('a broken schema file stops the process at start and names the record', () => {
  assert.throws(() => compile({ record: 'delivery', isPresent: true, schema: { type: 'recrod', name: 'x' } }), /a schema of delivery is not Avro/)
})

test('an older writer with fewer fields is read today, defaults filled in', () => {
  for (const record of ['delivery', 'attempt', 'dead-letter', 'subscription', 'endpoint-health']) {
    const present = schemaOf(record)
    const olderSchema = withoutDefaulted(present) as RecordSchema
    assert.ok(olderSchema.fields.length < present.fields.length || record === 'dead-letter')
    const older = compile({ record, isPresent: false, schema: olderSchema })
    const olderWire = createWire(record, [{ ...older, isPresent: true }])
    const wire = createWire(record, [compile({ record, isPresent: true, schema: present }), older])
    const read = wire.read(olderWire.write(emptyValue(olderSchema) as object, 10)) as Record<string, unknown>
    for (const { name, default: fallback } of present.fields) {
      assert.ok(read[name] !== undefined, `${record}: ${name} is there`)
      if (fallback !== undefined) assert.deepEqual(read[name], fallback, `${record}: ${name}`)
    }
  }
})

test('a newer writer with more fields is read once its schema is known, and waits before', () => {
  for (const [record, value] of [['delivery', sampleDelivery], ['dead-letter', sampleDeadLetter]] as const) {
    const present = compile({ record, isPresent: true, schema: schemaOf(record) })
    const fields = [
      { name: 'added', type: ['null', { type: 'array', items: { type: 'record', name: 'Added', fields: [{ name: 'x', type: 'bytes' }, { name: 'y', type: 'long' }] } }], default: null },
      ...schemaOf(record).fields,
      { name: 'label', type: 'string', default: '' },
    ]
    const newer = compile({ record, isPresent: false, schema: { ...schemaOf(record), fields } })
    const bytes = createWire(record, [{ ...newer, isPresent: true }])
      .write({ ...value, added: [{ x: Buffer.from('skipped'), y: 7 }, { x: Buffer.alloc(0), y: -1 }], label: 'skipped' }, 10)
    assert.deepEqual(createWire(record, [present, newer]).read(bytes), value)
    assert.throws(() => createWire(record, [present]).read(bytes), { name: 'RecordError', kind: 'unknown_schema' })
  }
})

test('a writer that no resolver can read is unreadable, not unknown', () => {
  const present = compile({ record: 'x', isPresent: true, schema: { type: 'record', name: 'X', fields: [{ name: 'a', type: 'string' }] } })
  const other = compile({ record: 'x', isPresent: false, schema: { type: 'record', name: 'X', fields: [{ name: 'b', type: 'string' }] } })
  const bytes = createWire('x', [{ ...other, isPresent: true }]).write({ b: 'text' }, 10)
  assert.throws(() => createWire('x', [present, other]).read(bytes), { kind: 'unreadable' })
})

test('a schema of today that is not there is a mistake of ours, said by name', () => {
  const sourcesOfX: SchemaSource[] = [{ record: 'x', isPresent: false, schema: 'string' }]
  assert.throws(() => createWire('x', sourcesOfX.map(compile)), /schemas\/x\.avsc is missing/)
})

function fieldsOf(schema: unknown): Field[] {
  if (Array.isArray(schema)) return schema.flatMap(fieldsOf)
  if (typeof schema !== 'object' || schema === null) return []
  const { fields = [], items, type } = schema as { fields?: Field[]; items?: unknown; type?: unknown }
  return [...fields, ...fields.flatMap((field) => fieldsOf(field.type)), ...fieldsOf(items), ...(typeof type === 'object' ? fieldsOf(type) : [])]
}

/** The schema as a first version may have had it: without any field that a later reader can fill in. */
function withoutDefaulted(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutDefaulted)
  if (typeof schema !== 'object' || schema === null) return schema
  const { fields, ...rest } = schema as { fields?: Field[] }
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, key === 'doc' ? value : withoutDefaulted(value)]))
  if (!fields) return inner
  return { ...inner, fields: fields.filter((field) => field.default === undefined).map((field) => ({ ...field, type: withoutDefaulted(field.type) })) }
}

function emptyValue(schema: unknown): unknown {
  if (Array.isArray(schema)) return null
  if (typeof schema === 'string') return schema === 'string' ? '' : schema === 'bytes' ? Buffer.alloc(0) : schema === 'boolean' ? false : 0
  const { type, fields = [] } = schema as { type: string; fields?: Field[] }
  return type === 'array' ? [] : Object.fromEntries(fields.map((field) => [field.name, emptyValue(field.type)]))
}
