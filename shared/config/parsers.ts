import { z } from 'zod'
import { formatDuration, parseDurationMs } from '../domain/duration.ts'

// What one variable may hold. The message of each check says what was expected instead: the end of a sentence that begins "NAME is ...: give".

/** From the text of a variable to its value. */
export type Schema<Value> = z.ZodType<Value, string>

export const anyText = z.string()

/** Text that must match `pattern`; `expected` says so in words. */
export const textMatching = (pattern: RegExp, expected: string) => z.string().regex(pattern, expected)

/** A number that the step before has read, NaN where it could not; both bounds included. */
export const numberWithin = (from: number, to: number, expected: string) => z.number(expected).min(from, expected).max(to, expected)

/** A whole number in decimal digits, both bounds included. */
export const wholeNumber = ({ from, to }: { from: number; to: number }) => {
  const expected = `a whole number from ${from} to ${to}`
  return z.string().regex(/^\d{1,15}$/, expected).transform(Number).pipe(numberWithin(from, to, expected))
}

/** `true` or `false`, also what compose files and charts write for them: `1`, `yes`, `on` and the like, in any case. */
export const yesOrNo = z.stringbool('true or false')

/** One of the words given; `words` may differ in case from what is typed. */
export const oneOf = <const Word extends string>(...words: readonly Word[]) =>
  z.string()
    .transform((text) => words.find((word) => word.toLowerCase() === text.toLowerCase()) ?? text)
    .pipe(z.enum(words, `one of ${words.join(', ')}`))

/** ms, or NaN where the text is not a duration: what was expected is said by the next step, with its bounds. */
const toMs = (text: string): number => {
  try {
    return parseDurationMs(text)
  } catch {
    return NaN
  }
}

/** A duration such as `30s`, `5m` or `14d`, in ms, both bounds included. */
export const duration = ({ fromMs, toMs: mostMs }: { fromMs: number; toMs: number }) =>
  z.string().transform(toMs)
    .pipe(numberWithin(fromMs, mostMs, `a duration from ${formatDuration(fromMs)} to ${formatDuration(mostMs)}, such as 30s, 5m or 2h`))

const byteUnits: Readonly<Record<string, number>> = { '': 1, b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 }

const toBytes = (text: string): number => {
  const [, digits, unit = ''] = /^(\d{1,12})\s*([a-z]*)$/i.exec(text) ?? []
  return Number(digits) * (byteUnits[unit.toLowerCase()] ?? NaN)
}

/** A size: plain bytes, or with KiB, MiB or GiB behind the number. */
export const byteSize = ({ from, to }: { from: number; to: number }) =>
  z.string().transform(toBytes).pipe(numberWithin(from, to, `a size from ${formatBytes(from)} to ${formatBytes(to)}, such as 256MiB`))

/** The shortest exact spelling that `byteSize` reads back. */
const formatBytes = (bytes: number): string => {
  const [unit, size] = ([['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['', 1]] as const).find(([, size]) => bytes % size === 0)!
  return `${bytes / size}${unit}`
}

const splitList = (text: string): string[] => text.split(',').map((part) => part.trim())

/** Values separated by commas, spaces around them ignored; at least one, each read by `item`, none twice unless `mayRepeat`. */
export const listOf = <Value>(item: Schema<Value>, { mayRepeat = false }: { mayRepeat?: boolean } = {}): Schema<readonly Value[]> =>
  z.string().transform(splitList).pipe(z.array(item).refine(
    (values) => mayRepeat || new Set(values).size === values.length, 'a list separated by commas in which nothing appears twice'))

/** `host:port`; IPv6 in brackets. The port is required: a forgotten one is a common mistake, and Kafka has no safe default. */
export const hostAndPort = z.string().refine((text) => {
  const port = Number(/^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+):(\d{1,5})$/i.exec(text)?.[1])
  return port >= 1 && port <= 65_535
}, 'host:port, such as kafka-1:9092')

/** Kafka's rule for topic names (letters, digits, dot, underscore, hyphen), with room kept for what is appended to a prefix. */
export const topicName = textMatching(/^(?!\.{1,2}$)[\w.-]{1,249}$/, 'a Kafka topic name (letters, digits, ".", "_", "-", at most 249)')

/** A tier by the end of its topic's name, in the one spelling topics have: `60s` becomes `1m`. */
export const tierName = z.union(
  [z.literal('soon'), z.string().transform(toMs).pipe(z.number().positive()).transform(formatDuration)], 'a tier such as 10s, or "soon"')

/** Where an input topic is read from when nothing was committed yet. `atMs` is epoch ms. */
export type EventsStart = { readonly kind: 'latest' } | { readonly kind: 'earliest' } | { readonly kind: 'time'; readonly atMs: number }

/** `latest`, `earliest`, or an ISO time that names its zone: one without would mean another moment on another machine. */
export const eventsStart: Schema<EventsStart> = z.union([
  z.enum(['latest', 'earliest']).transform((kind) => ({ kind })),
  z.iso.datetime({ offset: true }).or(z.iso.datetime({ offset: true, precision: z.TimePrecision.Minute })).transform((text) => ({ kind: 'time' as const, atMs: Date.parse(text) })),
], 'latest, earliest, or a time with its zone such as 2026-01-31T08:00:00Z')

/** What to give instead of `text`. Only the first mistake is told: those after it may follow from it. `isSecret`: nothing of `text` is quoted. */
export const expectedInstead = ({ issues: [issue] }: z.ZodError, text: string, isSecret: boolean): string => {
  const index = issue?.path[0]
  if (typeof index !== 'number') return issue?.message ?? 'another value'
  return `a list separated by commas, each ${issue?.message}${isSecret ? '' : ` ("${splitList(text)[index]}" is not)`}`
}
