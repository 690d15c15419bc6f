import { spawnSync } from 'node:child_process'

const found = spawnSync('promtool', ['--version'], { encoding: 'utf8' })

/** Goes into the options of a test: Debian's package `prometheus` has both programs. */
export const skipWithoutPrometheus: string | false = found.status === 0 ? false : 'needs promtool and prometheus (Debian: apt-get install prometheus)'

/** What promtool prints, and its exit code. */
export function promtool(args: readonly string[], input = ''): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { encoding: 'utf8', input })
  if (error) throw error
  return { status, output: `${stdout}${stderr}` }
}
