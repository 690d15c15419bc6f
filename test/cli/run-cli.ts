import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { applyTopics, planTopics } from '../../shared/kafka/provision.ts'
import { topicCatalogue, topicNames, type TopicNames } from '../../shared/kafka/topics.ts'
import { deleteTopicsAfter, kafkaForTests, testTopicPrefix, withAdmin, type Cleanup } from '../support/kafka.ts'

export type CliResult = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Standard output as one JSON value. */
  json(): unknown
  /** Standard output as JSON Lines. */
  lines(): unknown[]
  /** The error on the last line of standard error. */
  error(): { readonly code: string; readonly message: string; readonly hint: string | null }
}

export type CliOptions = {
  /** All KAFKA_ and POSTHOUSE_ names it sees. */
  readonly env?: Readonly<Record<string, string>>
  /** What standard input holds; null leaves it open. */
  readonly input?: string | null
  readonly nodeArgs?: readonly string[]
}

export type RunningCli = {
  readonly child: ChildProcess
  readonly ended: Promise<CliResult>
  stdout(): string
  stderr(): string
}

/** Starts the command line as a user would, without a terminal. */
export function startCli(args: readonly string[], { env = {}, input, nodeArgs = [] }: CliOptions = {}): RunningCli {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(KAFKA_|POSTHOUSE_|NODE_TEST_CONTEXT|WEBHOOK_)/.test(name))
  const child = spawn(process.execPath, [...nodeArgs, join(projectRoot, 'cli/posthouse.js'), ...args], {
    cwd: projectRoot, env: { ...Object.fromEntries(inherited), ...env }, stdio: 'pipe',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { stdout += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text })
  if (input !== null) child.stdin.end(input ?? '')
  const ended = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({
      code, stdout, stderr,
      json: () => JSON.parse(stdout) as unknown,
      lines: () => stdout.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line) as unknown),
      error: () => (JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as { error: ReturnType<CliResult['error']> }).error,
    }))
  })
  return { child, ended, stdout: () => stdout, stderr: () => stderr }
}

export const runCli = (args: readonly string[], options: CliOptions = {}): Promise<CliResult> => startCli(args, options).ended

/** Runs it and checks the exit code; a failure shows both outputs. */
export async function expectCli(code: number, args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const result = await runCli(args, options)
  assert.equal(result.code, code, `posthouse ${args.join(' ')}\nstdout: ${result.stdout}\nstderr: ${result.stderr}`)
  return result
}

export type Installation = {
  readonly names: TopicNames
  readonly eventsTopic: string
  readonly env: Readonly<Record<string, string>>
  /** `expectCli` in this installation. */
  expect(code: number, args: readonly string[], options?: CliOptions): Promise<CliResult>
  start(args: readonly string[], options?: CliOptions): RunningCli
}

/** The environment of an installation of its own on the test's broker; no topic of it exists unless `provisioned`. */
export async function installationFor(
  t: Cleanup, name: string, { provisioned }: { readonly provisioned: boolean },
): Promise<Installation> {
  const prefix = testTopicPrefix(name)
  deleteTopicsAfter(t, prefix)
  const names = topicNames(prefix)
  const eventsTopic = `${prefix}events`
  if (provisioned) {
    const catalogue = topicCatalogue({ prefix, partitions: 2, tierPartitions: 1, tiersMs: [10_000, 60_000] })
    await withAdmin(async (admin) => {
      await applyTopics(admin, await planTopics(admin, catalogue))
      await admin.createTopics({ topics: [{ topic: eventsTopic, numPartitions: 2 }] })
    })
  }
  const env = {
    KAFKA_BROKERS: kafkaForTests().brokers.join(','), POSTHOUSE_TOPIC_PREFIX: prefix, POSTHOUSE_GROUP_PREFIX: prefix.slice(0, -1),
    POSTHOUSE_PARTITIONS: '2', POSTHOUSE_TIER_PARTITIONS: '1', POSTHOUSE_TIERS: '10s,1m', POSTHOUSE_ALLOW_HTTP: 'true',
  }
  return {
    names, eventsTopic, env,
    expect: (code, args, options = {}) => expectCli(code, args, { ...options, env: { ...env, ...options.env } }),
    start: (args, options = {}) => startCli(args, { ...options, env: { ...env, ...options.env } }),
  }
}
