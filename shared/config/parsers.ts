import { formatDuration, parseDurationMs } from '../domain/duration.ts'

/** The value that was read, or what was expected instead: the end of a sentence that begins "NAME is ...: give". */
export type Parsed<Value> = { readonly value: Value } | { readonly expected: string }
export type Parser<Value> = (text: string) => Parsed<Value>

const accept = <Value>(value: Value): Parsed<Value> => ({ value })
const reject = (expected: string): { expected: string } => ({ expected })

export const anyText: Parser<string> = accept

/** Text that must match `pattern`; `expected` says so in words. */
export const textMatching = (pattern: RegExp, expected: string): Parser<string> =>
  (text) => pattern.test(text) ? accept(text) : reject(expected)

/** A whole number in decimal digits, both bounds included. */
export const wholeNumber = ({ from, to }: { from: number; to: number }): Parser<number> => (text) => {
  const value = Number(text)
  return /^\d{1,15}$/.test(text) && value >= from && value <= to ? accept(value) : reject(`a whole number from ${from} to ${to}`)
}

/** `true` or `false`, also `1`, `0`, `yes`, `no`, `on`, `off`, as compose files and charts write them. */
export const yesOrNo: Parser<boolean> = (text) => {
  const lower = text.toLowerCase()
  if (['true', '1', 'yes', 'on'].includes(lower)) return accept(true)
  if (['false', '0', 'no', 'off'].includes(lower)) return accept(false)
  return reject('true or false')
}

/** One of the words given; `spellings` may differ in case from what is typed. */
export const oneOf = <Word extends string>(...words: readonly Word[]): Parser<Word> => (text) => {
  const found = words.find((word) => word.toLowerCase() === text.toLowerCase())
  return found === undefined ? reject(`one of ${words.join(', ')}`) : accept(found)
}

/** ms, or null where the text is not a duration: what was expected is said here, with its bounds. */
const durationOrNull = (text: string): number | null => {
  try {
    return parseDurationMs(text)
  } catch {
    return null
  }
}

/** A duration such as `30s`, `5m` or `14d`, in ms, both bounds included. */
export const duration = ({ fromMs, toMs }: { fromMs: number; toMs: number }): Parser<number> => (text) => {
  const expected = `a duration from ${formatDuration(fromMs)} to ${formatDuration(toMs)}, such as 30s, 5m or 2h`
  const valueMs = durationOrNull(text)
  return valueMs !== null && valueMs >= fromMs && valueMs <= toMs ? accept(valueMs) : reject(expected)
}

const byteUnits: Readonly<Record<string, number>> = { '': 1, b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 }

/** A size: plain bytes, or with KiB, MiB or GiB behind the number. */
export const byteSize = ({ from, to }: { from: number; to: number }): Parser<number> => (text) => {
  const match = /^(\d{1,12})\s*([a-z]*)$/i.exec(text)
  const unit = match === null ? undefined : byteUnits[match[2]!.toLowerCase()]
  const value = unit === undefined ? NaN : Number(match![1]) * unit
  return value >= from && value <= to ? accept(value) : reject(`a size from ${formatBytes(from)} to ${formatBytes(to)}, such as 256MiB`)
}

/** The shortest exact spelling that `byteSize` reads back. */
export const formatBytes = (bytes: number): string => {
  const [unit, size] = ([['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['', 1]] as const).find(([, size]) => bytes % size === 0)!
  return `${bytes / size}${unit}`
}

/** Values separated by commas, spaces around them ignored; at least one, each read by `item`, none twice unless `mayRepeat`. */
export const listOf = <Value>(item: Parser<Value>, { mayRepeat = false }: { mayRepeat?: boolean } = {}): Parser<readonly Value[]> =>
  (text) => {
    const parts = text.split(',').map((part) => part.trim())
    const values: Value[] = []
    for (const part of parts) {
      const parsed = item(part)
      if ('expected' in parsed) return reject(`a list separated by commas, each ${parsed.expected} ("${part}" is not)`)
      values.push(parsed.value)
    }
    if (!mayRepeat && new Set(values).size !== values.length) return reject('a list separated by commas in which nothing appears twice')
    return accept(values)
  }

/** `host:port`; IPv6 in brackets. The port is required: a forgotten one is a common mistake, and Kafka has no safe default. */
export const hostAndPort: Parser<string> = (text) => {
  const match = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+):(\d{1,5})$/i.exec(text)
  const port = Number(match?.[1] ?? 0)
  return port >= 1 && port <= 65_535 ? accept(text) : reject('host:port, such as kafka-1:9092')
}

/** Kafka's rule for topic names (letters, digits, dot, underscore, hyphen), with room kept for what is appended to a prefix. */
export const topicName: Parser<string> = (text) =>
  /^[a-zA-Z0-9._-]{1,249}$/.test(text) && text !== '.' && text !== '..'
    ? accept(text)
    : reject('a Kafka topic name (letters, digits, ".", "_", "-", at most 249)')

/** A tier by the end of its topic's name, in the one spelling topics have: `60s` becomes `1m`. */
export const tierName: Parser<string> = (text) => {
  if (text === 'soon') return accept(text)
  const delayMs = durationOrNull(text)
  return delayMs === null || delayMs === 0 ? reject('a tier such as 10s, or "soon"') : accept(formatDuration(delayMs))
}

/** Where an input topic is read from when nothing was committed yet. `atMs` is epoch ms. */
export type EventsStart = { readonly kind: 'latest' } | { readonly kind: 'earliest' } | { readonly kind: 'time'; readonly atMs: number }

/** `latest`, `earliest`, or an ISO time that names its zone: one without would mean another moment on another machine. */
export const eventsStart: Parser<EventsStart> = (text) => {
  if (text === 'latest' || text === 'earliest') return accept({ kind: text })
  const atMs = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/.test(text) ? Date.parse(text) : NaN
  return Number.isNaN(atMs) ? reject('latest, earliest, or a time with its zone such as 2026-01-31T08:00:00Z') : accept({ kind: 'time', atMs })
}
