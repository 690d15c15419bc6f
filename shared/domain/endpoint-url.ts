/** Longest URL taken, in characters, as written and as normalised. */
export const maxUrlLength = 2048

export type NormalisedUrl =
  | { readonly ok: true; readonly url: string; readonly host: string }
  | { readonly ok: false; readonly reason: string }

// C0 and C1 controls and DEL. URL parsing drops tab, CR and LF without a word, so `/a<LF>b` would become `/ab`.
// oxlint-disable-next-line no-control-regex
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/
// The parser also takes `https:host` and `https:///host` for `https://host`.
const schemeAndAuthority = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]+)([^?#]*)/i
// WHATWG URL section 4.4: these forms of a dot segment are resolved away by the parser.
const dotSegment = /^(?:\.|%2e){1,2}$/i

/**
 * Brings the URL of an endpoint into the one form that is stored, hashed to its key and requested: scheme and host in
 * lower case and punycode, no default port, no fragment. Path and query stay as written; only what a URL cannot carry is
 * percent-encoded (blanks, non-ASCII, `"<>`, a `'` in the query). What the parser would alter beyond that is refused.
 * Blanks around it are trimmed. `host` has the port where it is not the default one. A reason never repeats the URL,
 * which may carry a token. Addresses are not judged here.
 */
export function normaliseUrl(text: string, { allowHttp }: { readonly allowHttp: boolean }): NormalisedUrl {
  const trimmed = text.trim()
  if (trimmed === '') return refused('the URL is empty')
  if (trimmed.length > maxUrlLength) return refused(tooLong)
  if (controlCharacter.test(trimmed)) return refused('the URL contains a control character or a line break')
  if (!trimmed.isWellFormed()) return refused('the URL contains half of a surrogate pair')
  const parts = schemeAndAuthority.exec(trimmed)
  if (parts === null) return refused('the URL must be absolute: https://host/path')
  const [, scheme = '', authority = '', path = ''] = parts
  const schemeReason = checkScheme(scheme.toLowerCase(), allowHttp)
  if (schemeReason !== null) return refused(schemeReason)
  if (authority.includes('@')) return refused('the URL contains a user name or password: send credentials in a custom header')
  if (path.includes('\\')) return refused(String.raw`the path contains a backslash, which would be sent as a slash: write / or %5C`)
  if (path.split('/').some((segment) => dotSegment.test(segment))) {
    return refused('the path contains a . or .. segment, which would be resolved before sending: write the path without it')
  }
  const parsed = URL.parse(trimmed)
  if (parsed === null) return refused('the URL has an invalid host or port')
  if (parsed.port === '0') return refused('the port must be 1 to 65535')
  parsed.hash = ''
  if (parsed.href.length > maxUrlLength) return refused(tooLong)
  return { ok: true, url: parsed.href, host: parsed.host }
}

const tooLong = `the URL is longer than ${maxUrlLength} characters`

function checkScheme(scheme: string, allowHttp: boolean): string | null {
  if (scheme === 'https' || (scheme === 'http' && allowHttp)) return null
  return scheme === 'http' ? 'http is not allowed here: use https, or allow http for this installation' : 'the scheme must be https'
}

function refused(reason: string): NormalisedUrl {
  return { ok: false, reason }
}
