import avsc from 'avsc'

/** A schema as it stands in a file; `avsc` checks it when it is compiled. */
export type AvroSchema = Parameters<typeof avsc.Type.forSchema>[0]
export type AvroType = avsc.Type
export type AvroResolver = ReturnType<avsc.Type['createResolver']>

/**
 * 64-bit integers as numbers, exact or refused. avsc's own long throws from 2^53 - 1 on and decodes some large negative numbers to
 * wrong values without a word.
 */
const longType = avsc.types.LongType.__with({
  fromBuffer: (bytes: Buffer): number => exact(bytes.readBigInt64LE()),
  toBuffer: (value: number): Buffer => {
    const bytes = Buffer.allocUnsafe(8)
    bytes.writeBigInt64LE(BigInt(value))
    return bytes
  },
  fromJSON: (value: number): number => value,
  toJSON: (value: number): number => value,
  isValid: (value: unknown): boolean => Number.isSafeInteger(value),
  compare: (a: number, b: number): number => a - b,
})

function exact(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is beyond what a time or a count can be`)
  return number
}

/** Compiles a schema for reading and writing. @throws on a schema that is not Avro */
export function compile(schema: AvroSchema): AvroType {
  return avsc.Type.forSchema(schema, { registry: { long: longType } })
}

/** Parsing Canonical Form (Avro specification): what a fingerprint is taken of. */
export function canonicalForm(schema: AvroSchema): string {
  return JSON.stringify(avsc.Type.forSchema(schema).schema())
}
