const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000]

/** A time span for people, to one decimal: `30 s`, `36 min`, `2.6 h`, `14 d`. Not exact; formatDuration is. */
export function inWords(ms: number): string {
  if (ms === 0) return '0'
  const [size, unit] = ms < second ? [1, 'ms'] as const
    : ms < minute ? [second, 's'] as const
    : ms < hour ? [minute, 'min'] as const
    : ms < 5 * day ? [hour, 'h'] as const
    : [day, 'd'] as const
  return `${Number((ms / size).toFixed(1))} ${unit}`
}

/** A probability below 1 as a percentage that never says 100: `99.6 %`, `99.9999 %`. */
export function inPercent(probability: number): string {
  for (const digits of [1, 2, 4, 6]) {
    const text = (probability * 100).toFixed(digits)
    if (Number(text) < 100) return `${Number(text)} %`
  }
  return 'over 99.999999 %'
}
