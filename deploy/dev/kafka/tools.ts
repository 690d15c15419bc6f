import { execFile } from 'node:child_process'
import { join } from 'node:path'

/** Apache Kafka 4 brokers need it. */
const leastJavaVersion = 17

const orElse = 'or set KAFKA_BROKERS=host:port to use a Kafka that is there already'

/** A tool that a local Kafka needs is not on this machine; the message says which, and what to install. */
export class MissingToolError extends Error {
  override readonly name = 'MissingToolError'
}

/** The `java` command to run: that of JAVA_HOME, as Maven does, else of the path. */
export function javaCommand(env: NodeJS.ProcessEnv = process.env): string {
  return env['JAVA_HOME'] ? join(env['JAVA_HOME'], 'bin', 'java') : 'java'
}

/** Throws a MissingToolError without Java 17 or newer. */
export async function requireJava(): Promise<void> {
  const output = await outputOf(javaCommand(), '-version')
  const version = output === null ? null : javaVersion(output)
  if (version !== null && version >= leastJavaVersion) return
  const found = version === null ? 'none was found' : `this is Java ${version}`
  throw new MissingToolError(`A local Kafka needs Java ${leastJavaVersion} or newer, and ${found} (${javaCommand()}): `
    + `install a JRE (Debian: openjdk-17-jre-headless, macOS: brew install openjdk), ${orElse}.`)
}

/** Throws a MissingToolError without Maven; only fetching Kafka's jars, once, needs it. */
export async function requireMaven(): Promise<void> {
  if (await outputOf('mvn', '--version') !== null) return
  throw new MissingToolError('Fetching Kafka from Maven Central needs Maven, and mvn was not found: '
    + `install it (Debian: maven, macOS: brew install maven), ${orElse}.`)
}

/** The feature release in what `java -version` prints: 17 of `"17.0.15"`, 8 of `"1.8.0_402"`; null when there is none. */
export function javaVersion(output: string): number | null {
  const [, first, second] = /version "(\d+)(?:\.(\d+))?/.exec(output) ?? []
  const feature = first === '1' ? second : first
  return feature === undefined ? null : Number(feature)
}

/** Both outputs of a command that ends well, else null. */
function outputOf(command: string, argument: string): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(command, [argument], (error, stdout, stderr) => resolve(error ? null : stdout + stderr))
  })
}
