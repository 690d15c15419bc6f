/** Avro's single-object encoding (specification 1.12): these two bytes, the schema's fingerprint in little endian, the body. */
const marker = 0xc301
export const singleObjectHeaderBytes = 10

export function singleObjectHeader(fingerprint: bigint): Buffer {
  const header = Buffer.alloc(singleObjectHeaderBytes)
  header.writeUInt16BE(marker)
  header.writeBigUInt64LE(fingerprint, 2)
  return header
}

/** Whether a value claims to be so encoded. No JSON text begins with these bytes. */
export function isSingleObject(value: Uint8Array): boolean {
  return value[0] === marker >> 8 && value[1] === (marker & 0xff)
}

/** The fingerprint of the schema it was written with, or null where the value is not so encoded, or too short. */
export function singleObjectFingerprint(value: Buffer): bigint | null {
  return isSingleObject(value) && value.length >= singleObjectHeaderBytes ? value.readBigUInt64LE(2) : null
}
