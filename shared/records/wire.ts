import { readdirSync, readFileSync } from 'node:fs'
import { canonicalForm, compile, type AvroResolver, type AvroSchema, type AvroType } from './avro.ts'
import { fingerprintOf } from './fingerprint.ts'
import { RecordError } from './record-error.ts'

/** First bytes of Avro's single-object encoding, before the fingerprint (8 bytes, little endian) and the body. */
const singleObjectMarker = 0xc301
const confluentMarker = 0x00
const headerBytes = 10

type Released = { readonly record: string; readonly fingerprint: bigint; readonly type: AvroType; readonly isPresent: boolean }

/**
 * Every schema in `schemas/`: `delivery.avsc` is written today, `delivery.<n>.avsc` was written by an earlier release and stays readable.
 * Loaded once; a broken file stops the process at start.
 */
const released: readonly Released[] = loadSchemas(new URL('../../schemas/', import.meta.url))
const byFingerprint = new Map(released.map((one) => [one.fingerprint, one]))

function loadSchemas(folder: URL): Released[] {
  return readdirSync(folder).filter((file) => file.endsWith('.avsc')).map((file) => {
    const schema = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as AvroSchema
    const parts = file.split('.')
    return { record: parts[0] ?? '', fingerprint: fingerprintOf(canonicalForm(schema)), type: compile(schema), isPresent: parts.length === 2 }
  })
}

/** How one kind of record is framed, written and read; the only place that knows. */
export type Wire = {
  /** Avro's single-object encoding. `sizeHint`: bytes it will probably take. */
  write(value: object, sizeHint: number): Buffer
  /** @throws RecordError */
  read(bytes: Buffer): object
}

/** @param record the file name in `schemas/` without its ending, such as `delivery` */
export function wireOf(record: string): Wire {
  const present = released.find((one) => one.record === record && one.isPresent)
  if (!present) throw new Error(`schemas/${record}.avsc is missing`)
  const { type } = present
  const header = Buffer.alloc(headerBytes)
  header.writeUInt16BE(singleObjectMarker)
  header.writeBigUInt64LE(present.fingerprint, 2)
  const resolvers = new Map<bigint, AvroResolver | undefined>([[present.fingerprint, undefined]])

  function resolverOf(fingerprint: bigint): AvroResolver | undefined {
    if (resolvers.has(fingerprint)) return resolvers.get(fingerprint)
    const writer = byFingerprint.get(fingerprint)
    if (!writer) throw new RecordError('unknown_schema', `the ${record} has a schema with fingerprint ${fingerprint.toString(16)}: it was written by a newer posthouse`)
    if (writer.record !== record) throw new RecordError('unreadable', `it is a record of kind ${writer.record}, not ${record}`)
    const resolver = type.createResolver(writer.type)
    resolvers.set(fingerprint, resolver)
    return resolver
  }

  return {
    write(value, sizeHint) {
      let buffer = Buffer.allocUnsafe(headerBytes + sizeHint)
      let end = type.encode(value, buffer, headerBytes)
      if (end < 0) {
        buffer = Buffer.allocUnsafe(buffer.length - end)
        end = type.encode(value, buffer, headerBytes)
      }
      header.copy(buffer)
      return buffer.subarray(0, end)
    },

    read(bytes) {
      if (bytes[0] === confluentMarker && bytes.length >= 5) {
        throw new RecordError('unknown_schema', `the ${record} was written with a schema registry, which this process does not use`)
      }
      if (bytes.length < headerBytes || bytes.readUInt16BE(0) !== singleObjectMarker) {
        throw new RecordError('unreadable', `it is not a ${record} in Avro's single-object encoding (${bytes.length} bytes)`)
      }
      const resolver = resolverOf(bytes.readBigUInt64LE(2))
      try {
        return type.fromBuffer(bytes.subarray(headerBytes), resolver) as object
      } catch (error) {
        throw new RecordError('unreadable', `the ${record} cannot be decoded: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
      }
    },
  }
}

/** Schemas of a record that may be read, for those who register or list them. */
export const knownFingerprints = (record: string): bigint[] => released.filter((one) => one.record === record).map(({ fingerprint }) => fingerprint)
