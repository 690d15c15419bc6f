import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder with our package.json, above wherever this file came to lie. */
export const projectRoot = findProjectRoot(import.meta.dirname)

/** Everything that a local run keeps: Kafka's jars and data, logs, the run file. Ignored by git and safe to delete when nothing runs. */
export const stateFolder = join(projectRoot, '.posthouse')

function findProjectRoot(from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (dirname(folder) === folder) throw new Error(`no package.json above ${from}: posthouse was installed without it, install it again`)
  }
}
