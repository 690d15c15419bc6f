import type { ReadText, Report } from './files.ts'
import { adminToken, type Values } from './settings.ts'

/** The tokens of both settings; no text of one is ever reported. */
export function readAdminTokens({ adminTokens, adminTokensFile }: Values, readText: ReadText, report: Report): readonly string[] {
  return [...new Set([...(adminTokens ?? []), ...(adminTokensFile === null ? [] : readFile(adminTokensFile, readText, report))])]
}

/** One a line; empty lines and those that begin with # are none. */
function readFile(path: string, readText: ReadText, report: Report): readonly string[] {
  let text: string
  try {
    text = readText(path)
  } catch (error) {
    report(`POSTHOUSE_ADMIN_TOKENS_FILE names ${path}, which could not be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}): give the path of a file this user may read`)
    return []
  }
  const lines = text.split('\n').map((line, index) => ({ token: line.trim(), number: index + 1 }))
    .filter(({ token }) => token !== '' && !token.startsWith('#'))
  for (const { token, number } of lines) {
    const { error } = adminToken.safeParse(token)
    if (error) report(`line ${number} of ${path} (POSTHOUSE_ADMIN_TOKENS_FILE) is not usable: give ${error.issues[0]?.message}`)
  }
  if (lines.length === 0) report(`POSTHOUSE_ADMIN_TOKENS_FILE names ${path}, which has no token in it: write one a line`)
  return lines.map(({ token }) => token)
}
