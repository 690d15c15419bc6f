import type avsc from 'avsc'
import { compileSchema, type AvroSchema } from './avro-types.ts'
import { canonicalForm } from './canonical-form.ts'
import { fingerprintOf } from './fingerprint.ts'

/** A schema as it stands in a file of `schemas/`. */
export type SchemaSource = {
  /** The file's name up to its first dot: `delivery` of `delivery.avsc` and of `delivery.1.avsc`. */
  readonly record: string
  /** What is written today; the others were written by earlier releases and stay readable. */
  readonly isPresent: boolean
  readonly schema: unknown
}

export type CompiledSchema = {
  readonly record: string
  readonly isPresent: boolean
  /** CRC-64-AVRO of the canonical form. */
  readonly fingerprint: bigint
  readonly type: avsc.Type
}

/** How the bytes of one writer's schema become values of the reader's; undefined where both are the same. */
export type Resolver = ReturnType<avsc.Type['createResolver']> | undefined

/** @throws when the source is not an Avro schema: a broken file stops the process at start */
export function compile({ record, isPresent, schema }: SchemaSource): CompiledSchema {
  try {
    return { record, isPresent, fingerprint: fingerprintOf(canonicalForm(schema)), type: compileSchema(schema as AvroSchema) }
  } catch (error) {
    throw new Error(`a schema of ${record} is not Avro: mend its file in schemas/`, { cause: error })
  }
}

/**
 * Finds the resolver for a writer's fingerprint, made once for each. A fingerprint that no schema has is null.
 * `reader` is one of `schemas`; a writer's schema of another kind of record makes it throw.
 */
export function createResolvers(reader: CompiledSchema, schemas: readonly CompiledSchema[]): (fingerprint: bigint) => Resolver | null {
  const writers = new Map(schemas.map((one) => [one.fingerprint, one]))
  const resolvers = new Map<bigint, Resolver>([[reader.fingerprint, undefined]])
  return (fingerprint) => {
    if (resolvers.has(fingerprint)) return resolvers.get(fingerprint)
    const writer = writers.get(fingerprint)
    if (!writer) return null
    if (writer.record !== reader.record) throw new Error(`it is a record of kind ${writer.record}`)
    const resolver = reader.type.createResolver(writer.type)
    resolvers.set(fingerprint, resolver)
    return resolver
  }
}
