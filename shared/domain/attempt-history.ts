import type { PastAttempt } from './delivery.ts'

/** How much of its past a delivery carries through every hop: a record must not grow until it no longer fits. */
export const historyBounds = {
  /** The latest so many attempts. */
  attempts: 20,
  /** Bytes of one excerpt, UTF-8. */
  excerptBytes: 1024,
  /** Bytes of all excerpts together. */
  excerptsBytes: 16 * 1024,
} as const

/**
 * Adds an attempt to the history and keeps it within its bounds. Excerpts give way first: the newest keep theirs whole,
 * the one at the limit is cut, older ones lose theirs. Then the oldest attempts go.
 */
export function withAttempt(attempts: readonly PastAttempt[], latest: PastAttempt): PastAttempt[] {
  const kept = [...attempts, latest].slice(-historyBounds.attempts)
  let left: number = historyBounds.excerptsBytes
  const newestFirst = kept.toReversed().map((attempt) => {
    if (attempt.excerpt === null) return attempt
    const excerpt = cutUtf8(attempt.excerpt, Math.min(left, historyBounds.excerptBytes))
    left -= Buffer.byteLength(excerpt)
    if (excerpt === attempt.excerpt) return attempt
    return { ...attempt, excerpt: excerpt === '' ? null : excerpt }
  })
  return newestFirst.toReversed()
}

/** The longest beginning of a text that takes at most `maxBytes` of UTF-8, never with half a character at its end. */
export function cutUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  let end = Math.max(0, maxBytes)
  // Continuation bytes are 10xxxxxx: step back to where the cut character begins.
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
