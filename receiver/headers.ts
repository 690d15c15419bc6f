/** A Fetch `Headers`, or an object as `request.headers` of node:http is. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** The value of a header, whatever the case of its name; of one sent more than once all values, joined as Node joins them. */
export function headerValue(headers: HeaderSource, name: string): string | null {
  if (typeof headers.get === 'function') return headers.get(name)
  const record = headers as Readonly<Record<string, string | readonly string[] | undefined>>
  const lower = name.toLowerCase()
  const value = record[lower] ?? Object.entries(record).find(([key]) => key.toLowerCase() === lower)?.[1]
  if (value === undefined) return null
  return typeof value === 'string' ? value : value.join(', ')
}
