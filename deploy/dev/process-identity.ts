import { readFileSync } from 'node:fs'

/** Names one process for good: ids are used again, so the start time belongs to it. */
export type ProcessIdentity = {
  readonly pid: number
  /** In clock ticks since the boot, as /proc has it; null where there is no /proc. */
  readonly startTicks: string | null
}

/** Who `pid` is now. */
export function identify(pid: number): ProcessIdentity {
  return { pid, startTicks: processStat(pid)?.startTicks ?? null }
}

/** Whether that very process still runs. One that has ended and was not waited for (a zombie) does not. */
export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it is there, and someone else's.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const stat = processStat(pid)
  if (!stat) return startTicks === null
  return stat.state !== 'Z' && (startTicks === null || stat.startTicks === startTicks)
}

/** proc(5): state is the 3rd field and starttime the 22nd; the 2nd, the name in brackets, may itself hold spaces and brackets. */
function processStat(pid: number): { readonly state: string; readonly startTicks: string } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [state, startTicks] = [fields[0], fields[19]]
    return state && startTicks ? { state, startTicks } : null
  } catch {
    return null
  }
}
