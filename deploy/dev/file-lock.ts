import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts'

/**
 * Runs `work` while no other process of this machine does, by a file that names the holder. A holder that died is replaced. Two that
 * replace the same dead holder in the same instant may both go on: what is done under the lock must bear being done twice.
 */
export async function withFileLock<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  while (!(await tryLock(file))) {
    const holder = await readHolder(file)
    if (!holder) continue
    if (isAlive(holder)) await delay(100)
    else await rm(file, { force: true })
  }
  try {
    return await work()
  } finally {
    await rm(file, { force: true })
  }
}

async function tryLock(file: string): Promise<boolean> {
  // Linked into place when whole, so that a lock never lies there without saying whose it is.
  const own = `${file}.${randomUUID()}`
  try {
    await writeFile(own, JSON.stringify(identify(process.pid)))
    await link(own, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new Error(`the lock ${file} could not be taken: ${(error as Error).message}`, { cause: error })
  } finally {
    await rm(own, { force: true })
  }
}

/** null: there is none any more. */
async function readHolder(file: string): Promise<ProcessIdentity | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as ProcessIdentity
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(`the lock ${file} cannot be read: ${(error as Error).message}; delete it if nothing runs`, { cause: error })
  }
}
