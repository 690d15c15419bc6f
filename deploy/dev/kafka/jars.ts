import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { withFileLock } from '../file-lock.ts'
import { stateFolder } from '../folders.ts'
import { describeEnd, spawnLeashed } from '../leash.ts'
import { requireMaven } from './tools.ts'

const pomFile = join(import.meta.dirname, 'pom.xml')

/** Where progress is told: rewriting one line on a terminal, a single line elsewhere. */
export type ProgressStream = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

export type JarsOptions = {
  /** Default: `.posthouse` in the project. */
  readonly folder?: string
  readonly progress?: ProgressStream
}

/**
 * The folder with Kafka's jars, fetched from Maven Central when they are not there yet (44 MB, about 10 s). One starter fetches, others
 * wait for it; the folder appears whole or not at all. Throws a MissingToolError without Maven, an Error when the fetch fails.
 */
export async function kafkaJars({ folder = stateFolder, progress = process.stderr }: JarsOptions = {}): Promise<string> {
  const home = join(folder, `kafka-${await kafkaVersion()}`)
  const libs = join(home, 'libs')
  if (existsSync(libs)) return libs
  await requireMaven()
  await mkdir(home, { recursive: true })
  await withFileLock(join(home, 'fetch.lock'), async () => {
    if (existsSync(libs)) return
    const partial = join(home, `libs.partial-${process.pid}`)
    try {
      await fetchJars(partial, progress)
      await rename(partial, libs)
    } catch (error) {
      // Whoever else came to fetch at the same time has put the same jars there.
      if (!existsSync(libs)) throw error
    } finally {
      await rm(partial, { recursive: true, force: true })
    }
  })
  return libs
}

async function kafkaVersion(): Promise<string> {
  const version = /<kafka\.version>([\w.-]+)<\/kafka\.version>/.exec(await readFile(pomFile, 'utf8'))?.[1]
  if (!version) throw new Error(`${pomFile} names no kafka.version`)
  return version
}

async function fetchJars(target: string, progress: ProgressStream): Promise<void> {
  const version = await kafkaVersion()
  const intro = `Fetching Apache Kafka ${version} from Maven Central (44 MB, once)`
  progress.write(progress.isTTY ? intro : `${intro} ...\n`)
  let files = 0
  const lastLines: string[] = []
  const maven = await spawnLeashed({
    command: 'mvn',
    args: ['-B', '-f', pomFile, 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${target}`],
    graceMs: 2_000,
    onLine: (line) => {
      if (line.includes('Downloaded from')) {
        files++
        if (progress.isTTY) progress.write(`\r${intro}: ${files} files `)
      } else if (line.includes('ERROR')) {
        lastLines.push(line)
      }
    },
  })
  const ended = await maven.ended
  if (progress.isTTY) progress.write('\r\x1b[K')
  if (ended.code === 0) return
  throw new Error(`Kafka could not be fetched from Maven Central (mvn ended with ${describeEnd(ended)}): check the network and try again, `
    + `or set KAFKA_BROKERS=host:port to use a Kafka that is there already.\n${lastLines.slice(0, 5).join('\n')}`)
}
