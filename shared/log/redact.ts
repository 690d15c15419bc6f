/**
 * URLs of endpoints carry tokens in path, query and user info: of every URL only scheme, host and port may be shown.
 * The end of a URL is where JSON or prose ends it: a quote, a blank, a bracket, a backslash.
 */
const url = /\b(https?:\/\/)(?:[^\s"'<>\\/?#@]*@)?([^\s"'<>\\/?#]*)([/?#][^\s"'<>\\]*)?/gi
const signingSecret = /whsec_[A-Za-z0-9+/_=-]+/g

/** Text without what may not be seen: rests of URLs and signing secrets. Meant as a net below code that does not log them at all. */
export const redactText = (text: string): string =>
  // The look before the search: almost no line has either.
  (text.includes('://') ? text.replace(url, (_, scheme: string, host: string, rest?: string) => `${scheme}${host}${rest && rest !== '/' ? '/…' : ''}`) : text)
    .replace(signingSecret, 'whsec_[redacted]')

export type DescribedError = {
  readonly type: string
  readonly message: string
  readonly code?: string
  readonly stack?: string
  readonly cause?: DescribedError
}

/**
 * An error as it is logged: its own properties are left out, as they may hold a request, a URL or a configuration. Causes follow, at most
 * five deep. `withStack` is for our own bugs; the stack of a refused connection tells nothing.
 */
export const describeError = (error: unknown, { withStack = false, depth = 5 }: { withStack?: boolean; depth?: number } = {}): DescribedError => {
  if (!(error instanceof Error)) return { type: typeof error, message: redactText(String(error)) }
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    message: redactText(error.message),
    ...(typeof code === 'string' ? { code } : {}),
    ...(withStack && error.stack !== undefined ? { stack: redactText(error.stack) } : {}),
    ...(error.cause !== undefined && depth > 1 ? { cause: describeError(error.cause, { withStack, depth: depth - 1 }) } : {}),
  }
}

/** Keys whose values are never written, at any depth: secrets, and what may hold them. */
const secretKeys = new Set([
  'secret', 'secrets', 'password', 'passphrase', 'authorization', 'token', 'signature', 'url', 'headers', 'sourceheaders', 'body', 'sasl', 'ssl', 'tls',
])
const deepest = 4

/**
 * Fields as they are logged: no value under a key that holds secrets, errors described, bytes counted, nothing deeper than four levels.
 * By hand, as pino's own redaction by wildcards costs 16 us a line and this 1 us.
 */
export const redactFields = (
  fields: Readonly<Record<string, unknown>>, { withStack = false, depth = 1 }: { withStack?: boolean; depth?: number } = {},
): Record<string, unknown> => {
  const redacted: Record<string, unknown> = {}
  for (const name of Object.keys(fields)) {
    redacted[name] = secretKeys.has(name.toLowerCase()) ? '[redacted]' : redactValue(fields[name], withStack, depth)
  }
  return redacted
}

const redactValue = (value: unknown, withStack: boolean, depth: number): unknown => {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (value instanceof Error) return describeError(value, { withStack })
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= deepest) return '[deeper]'
  if (Array.isArray(value)) return value.map((item) => redactValue(item, withStack, depth + 1))
  return redactFields(value as Record<string, unknown>, { withStack, depth: depth + 1 })
}
