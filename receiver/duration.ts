/** A number is milliseconds; `'500ms'`, `'30s'`, `'5m'`, `'24h'` and `'60d'` say their unit. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** In ms, above 0. Throws a RangeError that names the option and what it was given. */
export function durationMs(value: Duration, option: string): number {
  const [, count, unit] = typeof value === 'string' ? (/^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) ?? []) : [null, value, 'ms']
  const ms = Number(count) * (unitMs[unit ?? ''] ?? Number.NaN)
  if (ms > 0) return ms
  throw new RangeError(`${option} is ${JSON.stringify(value)}: give milliseconds above 0, or text as '500ms', '30s', '5m', '24h' or '60d'`)
}
