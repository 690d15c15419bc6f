import { execFile } from 'node:child_process'
import { accessSync, chownSync, constants, existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePorts } from '../../deploy/dev/kafka/ports.ts'
import { describeEnd, spawnLeashed, type Leashed } from '../../deploy/dev/leash.ts'
import { until } from './until.ts'

const run = promisify(execFile)

/** What `pg` needs to connect. */
export type PostgresConnection = { readonly host: string; readonly port: number; readonly user: string; readonly database: string }

export type LocalPostgres = {
  readonly connection: PostgresConnection
  /** Ends the server and removes its data. */
  stop(): Promise<void>
}

/** Where Debian, Homebrew and PostgreSQL's own packages have it, when it is not on the path. */
const usualFolders = ['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt', '/usr/pgsql']

/**
 * A server of one's own, on fresh data and a free port of loopback. A text says why there is none: for a test to skip with. It
 * refuses to run as root, so then it runs as another user.
 */
export async function startPostgres(): Promise<LocalPostgres | string> {
  const bin = findPostgres()
  if (bin === null) return 'PostgreSQL is not installed here (postgres and initdb; on Debian the package postgresql): install it to run this test'
  const user = process.getuid?.() === 0 ? await otherUser() : null
  if (typeof user === 'string') return user
  const as = (command: string, args: readonly string[]): [string, string[]] => (
    user === null ? [command, [...args]] : ['setpriv', [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--', command, ...args]]
  )
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-postgres-'))
  if (user !== null) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  await run(...as(join(bin, 'initdb'), ['-D', data, '-U', 'posthouse', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']), { cwd: folder })
  return startServer(folder, (port) => as(join(bin, 'postgres'), [
    '-D', data, '-h', '127.0.0.1', '-p', String(port), '-k', '', '-c', 'fsync=off', '-c', 'shared_buffers=16MB', '-c', 'max_connections=60',
  ]))
}

export type TestPool = {
  readonly pool: pg.Pool
  /** Resolves when its connections are closed: the pool's own `end` does not wait for that, and the server's end would be an error. */
  close(): Promise<void>
}

export function openPool(options: pg.PoolConfig): TestPool {
  const pool = new pg.Pool(options)
  let open = 0
  pool.on('connect', () => void (open += 1))
  pool.on('remove', () => void (open -= 1))
  const close = async (): Promise<void> => {
    await pool.end()
    await until(() => open === 0, { message: () => `${open} connections to close` })
  }
  return { pool, close }
}

async function startServer(folder: string, commandFor: (port: number) => [string, string[]]): Promise<LocalPostgres> {
  const [port] = await freePorts(1) as [number]
  const [command, args] = commandFor(port)
  const lines: string[] = []
  const server = await spawnLeashed({ command, args, cwd: folder, graceMs: 3_000, onLine: (line) => lines.push(line) })
  const stop = async (): Promise<void> => {
    // "Fast": does not wait for its clients to leave, as SIGTERM does.
    server.signal('SIGINT')
    await server.terminate(10_000)
    await rm(folder, { recursive: true, force: true })
  }
  const connection = { host: '127.0.0.1', port, user: 'posthouse', database: 'postgres' }
  try {
    await until(() => answers(server, connection, lines), { deadlineMs: 60_000, intervalMs: 50, message: () => `PostgreSQL to start:\n${lines.join('\n')}` })
    return { connection, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function answers(server: Leashed, connection: PostgresConnection, lines: readonly string[]): Promise<boolean> {
  if (server.hasEnded()) throw new Error(`PostgreSQL ended at its start (${describeEnd(await server.ended)}):\n${lines.join('\n')}`)
  const client = new pg.Client(connection)
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end()
  }
}

function findPostgres(): string | null {
  const versions = usualFolders.filter((folder) => existsSync(folder)).flatMap((folder) => readdirSync(folder).map((name) => join(folder, name, 'bin')))
  // The newest first, where there are several.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))]
  return folders.find((folder) => folder !== '' && ['postgres', 'initdb'].every((name) => isExecutable(join(folder, name)))) ?? null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function otherUser(): Promise<{ readonly uid: number; readonly gid: number } | string> {
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all(['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)))
      await run('setpriv', ['--version'])
      if (uid !== undefined && gid !== undefined) return { uid, gid }
    } catch {
      // No such user, or no setpriv: the text below says so.
    }
  }
  return 'PostgreSQL does not run as root, and there is no setpriv, or no user postgres or nobody, to run it as'
}
