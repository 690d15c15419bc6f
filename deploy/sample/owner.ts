import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { identify, isAlive, type ProcessIdentity } from '../dev/process-identity.ts'

/**
 * Takes a folder for this process alone and resolves to what gives it back. One that a killed process held is taken over.
 * @throws when a process that lives holds it
 */
export async function takeFolder(folder: string): Promise<() => Promise<void>> {
  const file = join(folder, 'owner.json')
  const owner = await readOwner(file)
  if (owner !== null && isAlive(owner)) {
    throw new Error(`a sample runs already in ${folder} (process ${owner.pid}): end it, or give this one a folder of its own with --folder`)
  }
  await writeFile(file, JSON.stringify(identify(process.pid)))
  return () => rm(file, { force: true })
}

async function readOwner(file: string): Promise<ProcessIdentity | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as ProcessIdentity
  } catch (error) {
    // Cut short by a kill: as good as none.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
