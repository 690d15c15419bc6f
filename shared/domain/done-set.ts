/**
 * The set of offsets that are done above a committed one, as text for the commit's metadata.
 *
 * `1b:` or `1g:`, then base64url of 4 bytes of check and the set. The digit is the version: a reader that does not know the
 * prefix has no set, which repeats work and loses nothing. The check covers the committed offset too, so a set is never
 * applied to an offset it was not written for (an operator's tool may move one and keep the other).
 *
 * b: a bit for each offset from base + 1, lowest bit first.
 * g: for each done run, upwards: varint((length - 1) * 2 + more), where `more` = 1 says that more than one unfinished offset
 *    lies before the run and varint(their number - 2) follows. One byte for a lone unfinished offset and up to 64 done ones.
 */

/** Done runs, flat: start, end (exclusive), start, end ... upwards, neither touching nor overlapping, all above the base. */
export type DoneRuns = readonly number[]

const checkBytes = 4
const prefixCharacters = 3

/**
 * At most `maxCharacters` of ASCII, in the shorter of the two forms; '' where nothing is done above `base`.
 * What does not fit is left out from the top: a shorter set is still true.
 */
export function encodeDoneSet(base: number, runs: DoneRuns, maxCharacters: number): string {
  const limit = Math.floor(((maxCharacters - prefixCharacters) * 3) / 4) - checkBytes
  if (runs.length === 0 || limit < 1) return ''
  const top = runs[runs.length - 1]!
  const bitmapBytes = Math.ceil((top - base - 1) / 8)

  const gaps = gapsOf(base, runs, Math.min(limit, bitmapBytes + 1))
  if (gaps.end === top && gaps.bytes.length <= bitmapBytes) return sealed('g', base, gaps.bytes)
  if (bitmapBytes <= limit) return sealed('b', base, bitmapOf(base, runs, bitmapBytes))

  // Neither is whole: the one that reaches higher says more.
  const bitmap = withoutTrailingZeros(bitmapOf(base, runs, limit))
  if (gaps.end >= base + 1 + bitmap.length * 8) return sealed('g', base, gaps.bytes)
  return bitmap.length === 0 ? '' : sealed('b', base, bitmap)
}

/** The runs written by `encodeDoneSet` for this very `base`, or null where the text is not such a set. */
export function decodeDoneSet(base: number, metadata: string): DoneRuns | null {
  const kind = metadata.startsWith('1b:') ? 'b' : metadata.startsWith('1g:') ? 'g' : null
  if (kind === null) return null
  const bytes = Buffer.from(metadata.slice(prefixCharacters), 'base64url')
  if (bytes.length <= checkBytes) return null
  const set = bytes.subarray(checkBytes)
  if (bytes.readUInt32BE(0) !== checkOf(kind, base, set)) return null
  return kind === 'b' ? runsOfBitmap(base, set) : runsOfGaps(base, set)
}

function sealed(kind: 'b' | 'g', base: number, set: Buffer): string {
  const bytes = Buffer.allocUnsafe(checkBytes + set.length)
  bytes.writeUInt32BE(checkOf(kind, base, set), 0)
  set.copy(bytes, checkBytes)
  return `1${kind}:${bytes.toString('base64url')}`
}

/** FNV-1a, 32 bits, over the form, the base and the set: against mix-ups, not against an adversary. */
function checkOf(kind: 'b' | 'g', base: number, set: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const character of `${kind}${base}:`) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193)
  for (let i = 0; i < set.length; i += 1) hash = Math.imul(hash ^ set[i]!, 0x01000193)
  return hash >>> 0
}

/** The lowest runs that fit in `limit` bytes, and where they end. */
function gapsOf(base: number, runs: DoneRuns, limit: number): { bytes: Buffer; end: number } {
  const bytes = Buffer.allocUnsafe(limit + 16) // one run is at most 16 bytes: two varints of 53 bits
  let length = 0
  let end = base
  for (let i = 0; i < runs.length; i += 2) {
    const start = runs[i]!
    const unfinished = start - end
    const hasMore = unfinished > 1
    let next = putVarint(bytes, length, (runs[i + 1]! - start - 1) * 2 + (hasMore ? 1 : 0))
    if (hasMore) next = putVarint(bytes, next, unfinished - 2)
    if (next > limit) break
    length = next
    end = runs[i + 1]!
  }
  return { bytes: bytes.subarray(0, length), end }
}

function runsOfGaps(base: number, set: Uint8Array): DoneRuns | null {
  const runs: number[] = []
  let at = 0
  let end = base
  // Multiplied, not shifted: a run may be longer than 32 bits hold.
  const varint = (): number => {
    let value = 0
    for (let scale = 1; at < set.length && scale < 2 ** 53; scale *= 128) {
      const byte = set[at]!
      at += 1
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    return Number.NaN
  }
  while (at < set.length) {
    const head = varint()
    const start = end + (head % 2 === 1 ? varint() + 2 : 1)
    end = start + Math.floor(head / 2) + 1
    if (!Number.isSafeInteger(end)) return null
    runs.push(start, end)
  }
  return runs
}

function putVarint(bytes: Buffer, at: number, value: number): number {
  let next = at
  let rest = value
  while (rest >= 0x80) {
    bytes[next] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
    next += 1
  }
  bytes[next] = rest
  return next + 1
}

function bitmapOf(base: number, runs: DoneRuns, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let i = 0; i < runs.length; i += 2) {
    let bit = runs[i]! - base - 1
    if (bit >= length * 8) break
    const end = Math.min(runs[i + 1]! - base - 1, length * 8)
    for (; bit < end && bit % 8 !== 0; bit += 1) bytes[bit >> 3]! |= 1 << (bit & 7)
    const wholeEnd = end - (end % 8)
    if (bit < wholeEnd) {
      bytes.fill(0xff, bit >> 3, wholeEnd >> 3)
      bit = wholeEnd
    }
    for (; bit < end; bit += 1) bytes[bit >> 3]! |= 1 << (bit & 7)
  }
  return bytes
}

function runsOfBitmap(base: number, set: Uint8Array): DoneRuns {
  const runs: number[] = []
  let start = -1
  for (let bit = 0; bit <= set.length * 8; bit += 1) {
    const isDone = bit < set.length * 8 && ((set[bit >> 3]! >> (bit & 7)) & 1) === 1
    if (isDone && start < 0) start = bit
    if (!isDone && start >= 0) {
      runs.push(base + 1 + start, base + 1 + bit)
      start = -1
    }
  }
  return runs
}

function withoutTrailingZeros(bytes: Buffer): Buffer {
  let length = bytes.length
  while (length > 0 && bytes[length - 1] === 0) length -= 1
  return bytes.subarray(0, length)
}
