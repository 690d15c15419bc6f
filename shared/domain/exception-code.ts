import type { FailureClass } from './classify.ts'
import { errorTable, systemCodes, type ErrorCode } from './error-codes.ts'

/** What an exception was recognised as, and the system's own code or error name that said so; neither names a host. */
export type RecognisedError = { readonly code: ErrorCode; readonly systemCode: string | null }

/** The fields Node, c-ares and undici put on errors; all may be missing or of another type. */
type ErrorFields = {
  readonly name?: unknown
  readonly code?: unknown
  readonly syscall?: unknown
  readonly address?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  readonly errors?: unknown
}

const codeOfSystemCode = new Map<string, ErrorCode>(
  Object.entries(systemCodes).flatMap(([code, names]) => names.map((name) => [name, code as ErrorCode] as const)),
)

/** Shape of what may go into a record: a constant's or an error class's name, never free text. */
const plainName = /^[A-Za-z][A-Za-z0-9_]{1,59}$/
const dnsCall = /^(?:query|getaddrinfo|getHostBy)/
/** Causes nest two or three deep; more is a loop. */
const maxDepth = 8

/**
 * Finds the code of anything thrown. A code of its own that says something definite wins over the causes; a wrapper
 * (no code, a class name only, or undici's general socket error) gives way to its `cause`. Several attempts at one
 * connection come as `errors` (Happy Eyeballs): what one of them says of our own machine comes first, then the class
 * that keeps the delivery alive.
 */
export function exceptionCode(thrown: unknown): RecognisedError {
  return recognise(thrown, 0) ?? { code: 'unknown', systemCode: nameOf(thrown) }
}

function recognise(thrown: unknown, depth: number): RecognisedError | null {
  if (typeof thrown !== 'object' || thrown === null || depth > maxDepth) return null
  const fields: ErrorFields = thrown
  if (Array.isArray(fields.errors)) {
    const found = fields.errors.map((error) => recognise(error, depth + 1)).filter((found) => found !== null)
    if (found.length > 0) return found.reduce((best, next) => (rank(next) < rank(best) ? next : best))
  }
  const own = recogniseOwn(fields)
  if (own !== null && own.isDefinite) return own
  return recognise(fields.cause, depth + 1) ?? own
}

function recogniseOwn(fields: ErrorFields): (RecognisedError & { isDefinite: boolean }) | null {
  const { code, name } = fields
  if (typeof code === 'string') {
    const found = byCode(code, fields)
    if (found !== null) return { code: found, systemCode: code, isDefinite: code !== 'UND_ERR_SOCKET' && code !== 'UND_ERR_INFO' }
  }
  const found = typeof name === 'string' ? codeOfSystemCode.get(name) : undefined
  return found === undefined || typeof name !== 'string' ? null : { code: found, systemCode: name, isDefinite: false }
}

/** The same code means different things by the call it came from; null where it is not known. */
function byCode(code: string, { syscall, address, message }: ErrorFields): ErrorCode | null {
  if (/^ERR_O?SSL_/.test(code)) return 'tls_protocol'
  if (code.startsWith('HPE_')) return 'protocol'
  // undici has no code of its own for an answer it could not use.
  if (code === 'UND_ERR_SOCKET' && (message === 'bad response' || message === 'bad upgrade')) return 'protocol'
  const found = codeOfSystemCode.get(code) ?? null
  if (typeof syscall === 'string' && dnsCall.test(syscall)) {
    // Here ECONNREFUSED is the name server's, not the endpoint's.
    return found === 'dns_not_found' || found === 'internal' || (found !== null && classBefore(found) === 'local') ? found : 'dns_failed'
  }
  if (code === 'ETIMEDOUT' && syscall === 'connect') return 'connect_timeout'
  // A machine without IPv6 says this of every IPv6 address: no lack of ports, and no reason to stop taking deliveries.
  if (code === 'EADDRNOTAVAIL' && typeof address === 'string' && address.includes(':')) return 'connect_unreachable'
  return found
}

const order: readonly FailureClass[] = ['local', 'retriable', 'ambiguous', 'permanent']

function rank({ code }: RecognisedError): number {
  return order.indexOf(classBefore(code))
}

function classBefore(code: ErrorCode): FailureClass {
  return errorTable.find((row) => row.error === code)?.before_send ?? 'ambiguous'
}

function nameOf(thrown: unknown): string | null {
  if (typeof thrown !== 'object' || thrown === null) return null
  const { code, name }: ErrorFields = thrown
  const text = typeof code === 'string' ? code : name
  return typeof text === 'string' && plainName.test(text) ? text : null
}
