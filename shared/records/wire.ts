import { readdirSync, readFileSync } from 'node:fs'
import { compile, createResolvers, type CompiledSchema, type Resolver, type SchemaSource } from './avro.ts'
import { RecordError } from './record-error.ts'
import { singleObjectFingerprint, singleObjectHeader, singleObjectHeaderBytes } from './single-object.ts'

/** First byte of Confluent's wire format; a schema id of 4 bytes follows. */
const confluentMarker = 0x00
const confluentHeaderBytes = 5

/** How one kind of record is framed, written and read; the only place that knows. */
export type Wire = {
  /** `sizeHint`: bytes it will probably take; a good one saves writing it twice. */
  write(value: object, sizeHint: number): Buffer
  /** Bytes in the result are views of `bytes`. @throws RecordError */
  read(bytes: Buffer): object
}

/**
 * Loaded once, when first imported. `delivery.avsc` is written today; `delivery.<n>.avsc` was written by a release and stays
 * readable, and stays in the folder.
 */
const released: readonly CompiledSchema[] = loadSchemas(new URL('../../schemas/', import.meta.url)).map(compile)

export function loadSchemas(folder: URL): SchemaSource[] {
  return readdirSync(folder).filter((file) => file.endsWith('.avsc')).map((file) => {
    const parts = file.split('.')
    return { record: parts[0] ?? '', isPresent: parts.length === 2, schema: JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as unknown }
  })
}

/** @param record the file name in `schemas/` without its ending, such as `delivery` */
export function wireOf(record: string): Wire {
  return createWire(record, released)
}

/** Writes the present schema of a record and reads every one of it in `schemas`. */
export function createWire(record: string, schemas: readonly CompiledSchema[]): Wire {
  const present = schemas.find((one) => one.record === record && one.isPresent)
  if (!present) throw new Error(`schemas/${record}.avsc is missing`)
  const { type } = present
  const header = singleObjectHeader(present.fingerprint)
  const resolverOf = createResolvers(present, schemas)

  function findResolver(fingerprint: bigint): Resolver {
    let resolver: Resolver | null
    try {
      resolver = resolverOf(fingerprint)
    } catch (error) {
      throw unreadable(record, error)
    }
    if (resolver !== null) return resolver
    const hex = fingerprint.toString(16).padStart(16, '0')
    throw new RecordError('unknown_schema', `the ${record} was written by a newer posthouse (schema fingerprint ${hex}): upgrade this one`)
  }

  function read(bytes: Buffer, at: number, resolver: Resolver): object {
    let decoded: { value: unknown; offset: number }
    try {
      decoded = type.decode(bytes, at, resolver)
    } catch (error) {
      throw unreadable(record, error)
    }
    if (decoded.offset !== bytes.length) {
      throw new RecordError('unreadable', `the ${record} ${decoded.offset < 0 ? 'is cut short' : `has ${bytes.length - decoded.offset} bytes too many`}`)
    }
    return decoded.value as object
  }

  return {
    write(value, sizeHint) {
      let buffer = Buffer.allocUnsafe(singleObjectHeaderBytes + sizeHint)
      let end = type.encode(value, buffer, singleObjectHeaderBytes)
      if (end < 0) {
        // The hint was too small, by this much.
        buffer = Buffer.allocUnsafe(buffer.length - end)
        end = type.encode(value, buffer, singleObjectHeaderBytes)
      }
      header.copy(buffer)
      return buffer.subarray(0, end)
    },

    read(bytes) {
      const fingerprint = singleObjectFingerprint(bytes)
      if (fingerprint !== null) return read(bytes, singleObjectHeaderBytes, findResolver(fingerprint))
      if (bytes[0] === confluentMarker && bytes.length >= confluentHeaderBytes) {
        throw new RecordError('unknown_schema', `the ${record} was written with a schema registry, which this version cannot read: a newer posthouse can`)
      }
      throw new RecordError('unreadable', `it is no ${record} in Avro's single-object encoding (${bytes.length} bytes)`)
    },
  }
}

function unreadable(record: string, cause: unknown): RecordError {
  return new RecordError('unreadable', `the ${record} cannot be decoded: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
}
