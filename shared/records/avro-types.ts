import { isUtf8 } from 'node:buffer'
import avsc from 'avsc'

/**
 * avsc's types where its own are unsafe for bytes that may be corrupt, or for values at the ends of their range. Checked against
 * avsc 5.7.9, whose `_read`, `_write` and `_skip` they replace: its version is pinned. None of `_read` may use `this` for more than
 * `itemsType`, since a resolver borrows them.
 */
type Tap = {
  readonly buf: Buffer
  pos: number
  readLong(): number
  readString(): string | undefined
  writeLong(value: number): void
  writeString(value: string): void
  writeFixed(bytes: Buffer): void
}
type Readable = { _read(tap: Tap): unknown; _skip(tap: Tap): void }
type TypeOptions = NonNullable<Parameters<typeof avsc.Type.forSchema>[1]>
export type AvroSchema = Parameters<typeof avsc.Type.forSchema>[0]

/** So many bytes of a varint hold 49 bits, which avsc's floating arithmetic gives exactly. */
const exactVarintBytes = 7
const longestVarint = 10

/** The 64-bit integer of an Avro long (zigzag varint) in `bytes[start]` to `bytes[end - 1]`. @throws RangeError when it has more bits */
export function readLongExactly(bytes: Uint8Array, start: number, end: number): bigint {
  // Before it is gathered: one that does not end for a megabyte would take minutes.
  if (end - start > longestVarint) throw new RangeError('a long has more than 64 bits')
  let raw = 0n
  for (let at = start; at < end; at += 1) raw |= BigInt((bytes[at] ?? 0) & 0x7f) << BigInt((at - start) * 7)
  if (raw >> 64n !== 0n) throw new RangeError('a long has more than 64 bits')
  return (raw >> 1n) ^ -(raw & 1n)
}

/** An Avro long as its bytes, for what avsc's floating arithmetic would round. */
function writeLongExactly(value: bigint): Buffer {
  let raw = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))
  const bytes: number[] = []
  for (; raw > 0x7fn; raw >>= 7n) bytes.push(Number(raw & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(raw)])
}

/** 64-bit integers as numbers, exact or refused. avsc's own throws from 2^53 - 1 on and gives some large negatives a wrong value. */
class ExactLong extends avsc.types.LongType {
  _read(tap: Tap): number {
    const start = tap.pos
    const value = tap.readLong()
    if (tap.pos - start <= exactVarintBytes) return value
    const exact = readLongExactly(tap.buf, start, tap.pos)
    if (!Number.isSafeInteger(Number(exact))) throw new RangeError(`${exact} is beyond what a time or a count can be`)
    return Number(exact)
  }

  _write(tap: Tap, value: unknown): void {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${String(value)} is not a whole number that can be written exactly`)
    if (Math.abs(value as number) < 2 ** 52) tap.writeLong(value as number)
    else tap.writeFixed(writeLongExactly(BigInt(value as number)))
  }

  _check(value: unknown): boolean {
    return Number.isSafeInteger(value)
  }
}

/** avsc reads any varint as an int. */
class ExactInt extends avsc.types.IntType {
  _read(tap: Tap): number {
    const value = tap.readLong()
    if ((value | 0) !== value) throw new RangeError('an int has more than 32 bits')
    return value
  }
}

/** Views of what is decoded, not copies: a body of 512 KiB is held once. Whoever keeps one for long keeps the whole value. */
class BytesView extends avsc.types.BytesType {
  _read(tap: Tap): Buffer {
    const length = tap.readLong()
    const start = tap.pos
    if (!(length >= 0 && length <= tap.buf.length - start)) throw new RangeError('bytes end beyond the value')
    tap.pos += length
    return tap.buf.subarray(start, tap.pos)
  }
}

/** UTF-8 or refused, where avsc would read replacement characters and write halves of surrogate pairs as they are. */
class StrictString extends avsc.types.StringType {
  _read(tap: Tap): string {
    const from = tap.pos
    const text = tap.readString()
    if (text === undefined) throw new RangeError('a string ends beyond the value')
    // Replacement characters are rare, so that the bytes are looked at a second time only where something may be wrong.
    if (text.includes('\ufffd') && !isUtf8(tap.buf.subarray(from, tap.pos).subarray(lengthBytes(tap.buf, from)))) {
      throw new RangeError('a string is not UTF-8')
    }
    return text
  }

  _write(tap: Tap, value: unknown): void {
    if (typeof value !== 'string') throw new TypeError(`a string is missing: there is ${value === null ? 'null' : typeof value} in its place`)
    tap.writeString(value.toWellFormed())
  }
}

function lengthBytes(bytes: Uint8Array, at: number): number {
  let count = 1
  while ((bytes[at + count - 1] ?? 0) & 0x80) count += 1
  return count
}

/**
 * avsc believes the number of items that stands before them: a few corrupt bytes would keep it busy for hours. Every item of ours
 * takes at least a byte (no array of nulls).
 */
class BoundedArray extends avsc.types.ArrayType {
  _read(tap: Tap): unknown[] {
    const items = this.itemsType as unknown as Readable
    const values: unknown[] = []
    for (let left = blockCount(tap); left > 0; left = blockCount(tap)) {
      for (; left > 0; left -= 1) values.push(items._read(tap))
    }
    return values
  }

  _skip(tap: Tap): void {
    const items = this.itemsType as unknown as Readable
    for (let left = blockCount(tap); left > 0; left = blockCount(tap)) {
      for (; left > 0; left -= 1) items._skip(tap)
    }
  }
}

/** Items in the next block; 0 ends the array. Below 0: that many, and the block's size follows, which nobody here needs. */
function blockCount(tap: Tap): number {
  const count = tap.readLong()
  if (count < 0) tap.readLong()
  if (!(Math.abs(count) <= tap.buf.length - tap.pos)) throw new RangeError('an array has more items than bytes')
  return Math.abs(count)
}

/** Decodes to plain objects, so that they compare, spread and print like any other. */
class PlainRecord extends avsc.types.RecordType {
  constructor(schema: AvroSchema, options: TypeOptions) {
    super(schema, options);
    (this.recordConstructor as { prototype: object }).prototype = Object.prototype
  }
}

const primitives: Readonly<Record<string, avsc.Type>> = {
  long: new ExactLong(), int: new ExactInt(), bytes: new BytesView(), string: new StrictString(),
}

/** Compiles a schema with the types above. @throws on a schema that is not Avro */
export function compileSchema(schema: AvroSchema): avsc.Type {
  return avsc.Type.forSchema(schema, {
    omitRecordMethods: true,
    typeHook(part, options) {
      const name = typeof part === 'string' ? part : typeNameOf(part)
      if (name !== null && Object.hasOwn(primitives, name)) return primitives[name]
      if (typeof part === 'string') return undefined
      if (name === 'array') return new BoundedArray(part, options)
      return name === 'record' ? new PlainRecord(part, options) : undefined
    },
  })
}

function typeNameOf(schema: AvroSchema): string | null {
  return typeof schema === 'object' && 'type' in schema && typeof schema.type === 'string' ? schema.type : null
}
