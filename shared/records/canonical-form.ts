/** Attributes in the order of the canonical form; all others are left out (Avro specification, "Parsing Canonical Form"). */
const containers: Readonly<Record<string, readonly string[]>> = {
  record: ['name', 'type', 'fields'],
  error: ['name', 'type', 'fields'],
  enum: ['name', 'type', 'symbols'],
  fixed: ['name', 'type', 'size'],
  array: ['type', 'items'],
  map: ['type', 'values'],
}
const primitives = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'])

type Attributes = Readonly<Record<string, unknown>>

/**
 * A schema in Parsing Canonical Form: what its fingerprint is taken of. Docs, defaults, aliases and logical types are not in it, so
 * two schemas that differ only there have one fingerprint and the same bytes. @throws on what is no schema
 */
export function canonicalForm(schema: unknown, namespace = ''): string {
  if (typeof schema === 'string') return JSON.stringify(primitives.has(schema) ? schema : fullName(schema, namespace))
  if (Array.isArray(schema)) return `[${schema.map((branch) => canonicalForm(branch, namespace)).join(',')}]`
  if (typeof schema !== 'object' || schema === null) throw new Error(`${String(schema)} is no Avro schema`)
  const attributes = schema as Attributes
  const { type } = attributes
  const order = typeof type === 'string' && Object.hasOwn(containers, type) ? containers[type] : undefined
  // `{"type": "string"}` is "string", and `{"type": {"type": "array", ...}}` the array.
  if (!order) return canonicalForm(type, namespace)

  const name = typeof attributes.name === 'string' ? fullName(attributes.name, namespaceOf(attributes, namespace)) : null
  const inner = name === null ? namespace : name.slice(0, Math.max(0, name.lastIndexOf('.')))
  const parts = order.map((attribute) => `"${attribute}":${attribute === 'name' ? JSON.stringify(name) : attributeForm(attribute, attributes[attribute], inner)}`)
  return `{${parts.join(',')}}`
}

function attributeForm(attribute: string, value: unknown, namespace: string): string {
  switch (attribute) {
    case 'fields':
      return `[${(value as readonly Attributes[]).map(({ name, type }) => `{"name":${JSON.stringify(name)},"type":${canonicalForm(type, namespace)}}`).join(',')}]`
    case 'items':
    case 'values':
      return canonicalForm(value, namespace)
    case 'size':
      return String(Number(value))
    default:
      return JSON.stringify(value)
  }
}

function namespaceOf({ namespace }: Attributes, enclosing: string): string {
  return typeof namespace === 'string' ? namespace : enclosing
}

/** A name with a dot is full already, whatever namespace stands beside it. */
function fullName(name: string, namespace: string): string {
  return name.includes('.') || namespace === '' ? name : `${namespace}.${name}`
}
