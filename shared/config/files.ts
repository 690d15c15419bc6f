import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

export type ReadText = (path: string) => string

/** What this process found wrong, gathered so that every mistake is reported at once. */
export type Report = (problem: string) => void

/** The text of the PEM file a setting names; null when it names none or when it could not be read, which was then reported. */
const readPem = (name: string, path: string | null, readText: ReadText, report: Report): string | null => {
  if (path === null) return null
  try {
    return readText(path)
  } catch (error) {
    report(`${name} names ${path}, which could not be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}): give the path of a PEM file this user may read`)
    return null
  }
}

/** Certificates of authorities. Node ignores what is not one, silently, so it is checked here. */
export const readAuthorities = (name: string, path: string | null, readText: ReadText, report: Report): string | null => {
  const text = readPem(name, path, readText, report)
  if (text === null) return null
  const blocks = text.match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]+-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) void new X509Certificate(block)
    if (blocks.length > 0) return text
  } catch {
    // Reported below: the error of the parser says nothing a reader could use.
  }
  report(`${name} names ${path}, which holds no readable certificate: give a file with "-----BEGIN CERTIFICATE-----" blocks`)
  return null
}

export type ClientCertificate = { readonly cert: string; readonly key: string; readonly passphrase: string | null }

/** A client certificate with its key, checked to be readable and to belong together. */
export const readClientCertificate = (
  { certFile, keyFile, passphrase }: { certFile: string | null; keyFile: string | null; passphrase: string | null },
  readText: ReadText, report: Report,
): ClientCertificate | null => {
  if ((certFile === null) !== (keyFile === null)) {
    report('KAFKA_TLS_CERT_FILE and KAFKA_TLS_KEY_FILE belong together: set both, or neither')
    return null
  }
  if (keyFile === null && passphrase !== null) report('KAFKA_TLS_KEY_PASSWORD is set without KAFKA_TLS_KEY_FILE: set both, or neither')
  const cert = readPem('KAFKA_TLS_CERT_FILE', certFile, readText, report)
  const key = readPem('KAFKA_TLS_KEY_FILE', keyFile, readText, report)
  if (cert === null || key === null) return null
  try {
    createSecureContext({ cert, key, ...(passphrase === null ? {} : { passphrase }) })
    return { cert, key, passphrase }
  } catch (error) {
    // OpenSSL's messages name the fault, never the content.
    report(`KAFKA_TLS_CERT_FILE and KAFKA_TLS_KEY_FILE cannot be used together (${(error as Error).message}): give a PEM certificate, its key, and KAFKA_TLS_KEY_PASSWORD where the key is encrypted`)
    return null
  }
}
