/**
 * Reads single fields of a JSON text whose validity is known, as they are written: a number keeps every digit, which JSON.parse would
 * round (RFC 8259 section 6 sets no range). Of repeated names the last counts, as in JSON.parse.
 */

/** The text of the value at a path of names, or null where there is none. `text` must be valid JSON. */
export function fieldText(text: string, path: readonly string[]): string | null {
  let start = 0
  let end = text.length
  for (const name of path) {
    const found = memberOf(text, skipSpace(text, start), end, name)
    if (!found) return null
    start = found.start
    end = found.end
  }
  return text.slice(start, end)
}

/** A string or number as text; null for any other value. */
export function scalarOf(json: string | null): string | null {
  if (json === null || json === '') return null
  if (json.startsWith('"')) return JSON.parse(json) as string
  return /^-?\d/.test(json) ? json : null
}

function memberOf(text: string, start: number, end: number, name: string): { start: number; end: number } | null {
  if (text[start] !== '{') return null
  let found: { start: number; end: number } | null = null
  let at = skipSpace(text, start + 1)
  while (at < end && text[at] !== '}') {
    const nameEnd = endOfString(text, at)
    const isWanted = JSON.parse(text.slice(at, nameEnd)) === name
    // Past the colon, which follows the name and any blanks.
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const valueEnd = endOfValue(text, valueStart)
    if (isWanted) found = { start: valueStart, end: valueEnd }
    at = skipSpace(text, valueEnd)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return found
}

function skipSpace(text: string, at: number): number {
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1
  return at
}

function endOfString(text: string, at: number): number {
  for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1
  return at + 1
}

function endOfValue(text: string, at: number): number {
  if (text[at] === '"') return endOfString(text, at)
  if (text[at] !== '{' && text[at] !== '[') {
    while (at < text.length && !',}] \n\r\t'.includes(text[at]!)) at += 1
    return at
  }
  for (let depth = 0; ; ) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at)
      continue
    }
    if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    at += 1
    if (depth === 0) return at
  }
}
