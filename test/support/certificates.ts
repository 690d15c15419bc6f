import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Certificate = { readonly key: string; readonly cert: string }

export type Certificates = {
  /** PEM of the authority that signed all but `selfSigned`. */
  readonly authority: string
  readonly valid: Certificate
  readonly expired: Certificate
  /** Valid, for other.example. */
  readonly wrongName: Certificate
  readonly selfSigned: Certificate
}

/** Whether there is an `openssl` to make certificates with; a test that needs them is skipped where there is none. */
export const canMakeCertificates = ((): boolean => {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

/** Makes an authority and certificates for `localhost` that are right or wrong in one way each. Takes about 100 ms. */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-certificates-'))
  const openssl = (...words: string[]): void => void execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const names = (host: string): string[] => ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`]
  const read = (name: string): Certificate => ({
    key: readFileSync(join(folder, `${name}.key`), 'utf8'), cert: readFileSync(join(folder, `${name}.pem`), 'utf8'),
  })
  const signed = (name: string, host: string, validity: string[]): Certificate => {
    openssl('req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, ...names(host))
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', 'authority.pem', '-CAkey', 'authority.key', '-CAcreateserial',
      '-copy_extensions', 'copy', ...validity, '-out', `${name}.pem`)
    return read(name)
  }
  // Which of the two an openssl takes depends on its version.
  const signedInThePast = (name: string, host: string): Certificate => {
    try {
      return signed(name, host, ['-days', '-1'])
    } catch {
      return signed(name, host, ['-not_before', '20200101000000Z', '-not_after', '20200102000000Z'])
    }
  }
  try {
    openssl('req', '-x509', ...newKey, '-keyout', 'authority.key', '-out', 'authority.pem', '-days', '2', '-subj', '/CN=test authority')
    openssl('req', '-x509', ...newKey, '-keyout', 'self.key', '-out', 'self.pem', '-days', '2', ...names('localhost'))
    return {
      authority: read('authority').cert,
      valid: signed('valid', 'localhost', ['-days', '2']),
      expired: signedInThePast('expired', 'localhost'),
      wrongName: signed('other', 'other.example', ['-days', '2']),
      selfSigned: read('self'),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
