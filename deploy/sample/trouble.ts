/** What a service says went wrong, from one line it wrote: its own words where the line is no JSON; null: the line tells of no trouble. */
export function troubleOf(line: string): string | null {
  if (!line.startsWith('{')) return line.trim() || null
  try {
    const { level, msg, error } = JSON.parse(line) as { readonly level?: unknown; readonly msg?: unknown; readonly error?: { readonly message?: unknown } }
    if (level !== 'fatal' && level !== 'error') return null
    return [msg, error?.message].filter((part) => typeof part === 'string').join(': ') || null
  } catch {
    return line
  }
}
