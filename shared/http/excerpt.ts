import { StringDecoder } from 'node:string_decoder'

/**
 * The beginning of a response body as text of at most `maxBytes` UTF-8 bytes, for people to read. What is not UTF-8 becomes
 * U+FFFD, NUL is left out (it ends strings in terminals and databases); a character cut in two at the end is left out too.
 */
export function excerptOf(chunks: readonly Buffer[], maxBytes: number): string {
  const [first] = chunks
  if (first === undefined) return ''
  const text = decodeWhole((chunks.length === 1 ? first : Buffer.concat(chunks)).subarray(0, maxBytes)).replaceAll('\0', '')
  // U+FFFD takes three bytes for one that could not be read: binary bodies would grow beyond what records have room for.
  return Buffer.byteLength(text) <= maxBytes ? text : decodeWhole(Buffer.from(text).subarray(0, maxBytes))
}

// Unlike toString, `write` holds back an incomplete character at the end.
const decodeWhole = (bytes: Buffer): string => new StringDecoder('utf8').write(bytes)
