/** Units a duration may be written in, in ms. */
const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof unitMs

/** Days are written only from here on: the tiers are called 24h and 48h, as in the published schedule. */
const daysFromMs = 72 * unitMs.h

const durationPattern = /^(\d{1,16})(ms|s|m|h|d)$/

/**
 * Reads one whole number with one unit: `500ms`, `10s`, `1m`, `2h`, `3d`. Result in ms, a safe integer, possibly 0.
 * Throws an Error fit for the person who wrote it; `what` names the setting.
 */
export function parseDurationMs(text: string, what = 'duration'): number {
  const match = durationPattern.exec(text)
  const value = match === null ? Number.NaN : Number(match[1]) * unitMs[match[2] as Unit]
  if (!Number.isSafeInteger(value)) {
    throw new Error(`${what} ${JSON.stringify(text.slice(0, 40))} is not a duration: write a whole number and a unit, such as 500ms, 10s, 1m, 2h or 3d`)
  }
  return value
}

/**
 * Writes a duration in the largest unit that keeps it exact: 90000 is `90s`, 60000 `1m`, 172800000 `48h`.
 * `parseDurationMs` gives the same number back for every whole number of ms from 0; fractions of a ms are rounded.
 */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) throw new RangeError(`cannot write ${ms} as a duration: pass a finite number of ms`)
  const size = Math.round(Math.abs(ms))
  const sign = ms < 0 && size > 0 ? '-' : ''
  return `${sign}${size / unitMs[exactUnit(size)]}${exactUnit(size)}`
}

function exactUnit(size: number): Unit {
  if (size === 0) return 's'
  if (size >= daysFromMs && size % unitMs.d === 0) return 'd'
  if (size % unitMs.h === 0) return 'h'
  if (size % unitMs.m === 0) return 'm'
  return size % unitMs.s === 0 ? 's' : 'ms'
}
