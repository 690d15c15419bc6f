/** What a field of a JSON text holds: text (a string, or a number as it is written), nothing (absent or null), or something else. */
export type FieldValue = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'none' } | { readonly kind: 'other' }

const none: FieldValue = { kind: 'none' }

/**
 * One field of a JSON text. `field` is the name of a member of the top-level object or, where there is none of that name, a path of
 * names joined by dots. `parsed` is JSON.parse of `text`. Of repeated names the last counts, as in JSON.parse. A number keeps every
 * digit and sign as written: JSON.parse would round it (RFC 8259 section 6 sets no range), and two ids would become one.
 */
export function readField(text: string, parsed: unknown, field: string): FieldValue {
  const path = ownMember(parsed, field) === undefined && field.includes('.') ? field.split('.') : [field]
  let value: unknown = parsed
  for (const name of path) value = ownMember(value, name)
  if (value === undefined || value === null) return none
  if (typeof value === 'string') return { kind: 'text', text: value }
  return typeof value === 'number' ? { kind: 'text', text: sourceAt(text, path) } : { kind: 'other' }
}

/** Own members only: `__proto__` and `constructor` are names like any other. */
function ownMember(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name]
}

/** The source of the value at a path that is known to be there. `text` must be valid JSON: nothing is checked a second time. */
function sourceAt(text: string, path: readonly string[]): string {
  let start = 0
  let end = text.length
  for (const name of path) [start, end] = memberAt(text, skipSpace(text, start), name)
  return text.slice(start, end)
}

/** Beginning and end of the value of an object's last member of a name; `start` is at its brace. */
function memberAt(text: string, start: number, name: string): [number, number] {
  let found: [number, number] = [start, start]
  let at = skipSpace(text, start + 1)
  while (text[at] === '"') {
    const nameEnd = endOfString(text, at)
    // Past the colon, which follows the name and any blanks.
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const valueEnd = endOfValue(text, valueStart)
    if (isName(text.slice(at, nameEnd), name)) found = [valueStart, valueEnd]
    at = skipSpace(text, valueEnd)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return found
}

/** `literal` with its quotes and escapes. */
function isName(literal: string, name: string): boolean {
  return literal.includes('\\') ? JSON.parse(literal) === name : literal.length === name.length + 2 && literal.startsWith(name, 1)
}

function skipSpace(text: string, at: number): number {
  let next = at
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t') next += 1
  return next
}

/** Behind the closing quote of the string that begins at `at`. */
function endOfString(text: string, at: number): number {
  let next = at + 1
  while (text[next] !== '"') next += text[next] === '\\' ? 2 : 1
  return next + 1
}

/** Behind the value that begins at `at`. Counts brackets instead of recursing: depth is the producer's choice. */
function endOfValue(text: string, at: number): number {
  let next = at
  let depth = 0
  do {
    const character = text[next]
    if (character === '"') next = endOfString(text, next)
    else if (character === '{' || character === '[') [depth, next] = [depth + 1, next + 1]
    else if (character === '}' || character === ']') [depth, next] = [depth - 1, next + 1]
    else next = depth > 0 ? next + 1 : endOfLiteral(text, next)
  } while (depth > 0)
  return next
}

function endOfLiteral(text: string, at: number): number {
  let next = at
  while (next < text.length && !',}] \n\r\t'.includes(text[next]!)) next += 1
  return next
}
