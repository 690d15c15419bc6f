/** Longest a receiver can make a delivery wait, ms. */
export const maxRetryAfterMs = 24 * 3_600_000

const weekday = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const longWeekday = '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)'
const monthNames = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const month = `(?<month>${monthNames.join('|')})`
const time = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`

// RFC 9110 section 5.6.7: the three forms a recipient must read, case-sensitive, always GMT. The weekday is not compared
// with the date: it adds nothing, and a receiver that gets it wrong still means the date.
const dateForms = [
  new RegExp(String.raw`^${weekday}, (?<day>\d\d) ${month} (?<year>\d{4}) ${time} GMT$`),
  new RegExp(String.raw`^${longWeekday}, (?<day>\d\d)-${month}-(?<year>\d\d) ${time} GMT$`),
  new RegExp(String.raw`^${weekday} ${month} (?<day>\d\d| \d) ${time} (?<year>\d{4})$`),
]

const deltaSeconds = /^\d{1,9}$/

/**
 * How long the receiver asked us to wait, ms from the response, at most a day; 0 for now or the past; null where no
 * header can be read (RFC 9110 section 10.2.3). `values` are the Retry-After headers as received; of several the longest
 * counts. Dates are compared with the response's own `Date`, so a receiver's wrong clock does no harm; where that cannot
 * be read, with `receivedAt` (epoch ms). `Date.parse` would read `120` as a year and asctime as local time.
 */
export function parseRetryAfterMs(values: readonly string[], dateHeader: string | null, receivedAt: number): number | null {
  const base = (dateHeader === null ? null : parseHttpDate(dateHeader, receivedAt)) ?? receivedAt
  const waits = values.map((value) => parseOne(value, base, receivedAt)).filter((wait) => wait !== null)
  return waits.length === 0 ? null : Math.min(Math.max(...waits, 0), maxRetryAfterMs)
}

function parseOne(value: string, base: number, receivedAt: number): number | null {
  const text = value.trim()
  if (deltaSeconds.test(text)) return Number(text) * 1_000
  const date = parseHttpDate(text, receivedAt)
  return date === null ? null : date - base
}

/**
 * Reads an HTTP date in any of its three forms; epoch ms, or null. `now` (epoch ms) settles the century of a two-digit
 * year: a date more than 50 years ahead lies in the past.
 */
export function parseHttpDate(value: string, now: number): number | null {
  const text = value.trim()
  for (const form of dateForms) {
    const groups = form.exec(text)?.groups
    if (groups !== undefined) return dateOf(groups, now)
  }
  return null
}

function dateOf(groups: Record<string, string | undefined>, now: number): number | null {
  const [day, hour, minute, second] = [Number(groups['day']), Number(groups['hour']), Number(groups['minute']), Number(groups['second'])]
  const monthIndex = monthNames.indexOf(groups['month'] ?? '')
  const yearText = groups['year'] ?? ''
  const thisYear = new Date(now).getUTCFullYear()
  const sameCentury = Math.floor(thisYear / 100) * 100 + Number(yearText)
  let year = Number(yearText)
  if (yearText.length === 2) year = sameCentury > thisYear + 50 ? sameCentury - 100 : sameCentury
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60) return null
  const at = new Date(0)
  at.setUTCFullYear(year, monthIndex, day)
  // The 31st of a shorter month, or day 0, would silently become a day of another one.
  if (at.getUTCMonth() !== monthIndex || at.getUTCDate() !== day) return null
  return at.getTime() + ((hour * 60 + minute) * 60 + second) * 1_000
}
