/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// RFC 9110 section 5.5, without obs-text: a new field should be ASCII, and receivers disagree on what the other bytes mean.
const fieldValue = /^[\u0021-\u007e](?:[\t\u0020-\u007e]*[\u0021-\u007e])?$/

/** Longest name and value, characters: many servers refuse a header section of more than 8 KiB. */
export const maxHeaderNameLength = 128
export const maxHeaderValueLength = 4096

/** Headers that are ours, or the connection's, or would say something about the body that is not so; in lower case. */
const reservedNames = new Set([
  'accept-encoding', 'connection', 'content-encoding', 'content-length', 'content-type', 'date', 'expect', 'host', 'http2-settings',
  'idempotency-key', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent',
])
const reservedPrefixes = ['proxy-', 'webhook-', 'x-webhook-']

/**
 * Says why a subscription's own header is refused, or null. A line break in a value would let whoever writes a
 * subscription add headers and requests of his own. The reason names the header but never its value, which may be a token.
 */
export function checkCustomHeader(name: string, value: string): string | null {
  if (name === '' || name.length > maxHeaderNameLength || !token.test(name)) {
    return `a header name must be an HTTP token of 1 to ${maxHeaderNameLength} characters (letters, digits, - and a few signs)`
  }
  const lower = name.toLowerCase()
  if (reservedNames.has(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix))) return `header ${name} is reserved`
  if (value === '') return `the value of header ${name} is empty`
  if (value.length > maxHeaderValueLength) return `the value of header ${name} is longer than ${maxHeaderValueLength} characters`
  if (!fieldValue.test(value)) {
    return `the value of header ${name} must be printable ASCII, without line breaks and without blanks at its ends`
  }
  return null
}
