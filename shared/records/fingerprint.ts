/** CRC-64-AVRO of nothing (Avro specification, "Schema Fingerprints"). */
const empty = 0xc15d213aa4d7a795n

const table = Array.from({ length: 256 }, (_, byte) => {
  let entry = BigInt(byte)
  for (let bit = 0; bit < 8; bit += 1) entry = (entry >> 1n) ^ (empty & -(entry & 1n) & 0xffffffffffffffffn)
  return entry
})

/** CRC-64-AVRO of a schema in Parsing Canonical Form. */
export function fingerprintOf(canonicalForm: string): bigint {
  let fingerprint = empty
  for (const byte of Buffer.from(canonicalForm)) {
    fingerprint = (fingerprint >> 8n) ^ table[Number((fingerprint ^ BigInt(byte)) & 0xffn)]!
  }
  return fingerprint
}
