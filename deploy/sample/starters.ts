import { readFileSync } from 'node:fs'
import { identify, isAlive, type ProcessIdentity } from '../dev/process-identity.ts'

const pollMs = 500
const shells = new Set(['sh', 'dash', 'bash', 'busybox', 'zsh'])

/**
 * Calls `onGone` once when `npm start`, or the shell it runs us by, is gone: killed with -9 neither can tell us, and nobody would be left
 * to end what we have started. Does nothing where npm did not start us. Returns what ends the watch.
 */
export function watchStarters(onGone: () => void, env: NodeJS.ProcessEnv = process.env): () => void {
  if (env['npm_lifecycle_event'] === undefined) return () => undefined
  const starters = startersOf(process.ppid)
  const parent = process.ppid
  const timer = setInterval(() => {
    // Without /proc there are no identities to compare, but an orphan gets another parent.
    if (process.ppid === parent && starters.every(isAlive)) return
    clearInterval(timer)
    onGone()
  }, pollMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** The shells above a process up to npm; npm's own parent is none of our business, as a terminal may be closed under `nohup`. */
function startersOf(pid: number): ProcessIdentity[] {
  const found: ProcessIdentity[] = []
  for (let at: number | null = pid; at !== null && at > 1;) {
    const { name, parent, commandLine } = describe(at)
    const isNpm = commandLine.startsWith('npm') || /\bnpm(-cli\.js)?\0/.test(commandLine)
    if (!isNpm && !shells.has(name)) return found
    found.push(identify(at))
    if (isNpm) return found
    at = parent
  }
  return found
}

function describe(pid: number): { readonly name: string; readonly parent: number | null; readonly commandLine: string } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
    return { name: field('Name'), parent: Number(field('PPid')), commandLine: readFileSync(`/proc/${pid}/cmdline`, 'utf8') }
  } catch {
    // There is no /proc, or the process is gone.
    return { name: '', parent: null, commandLine: '' }
  }
}
