import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { identify, isAlive, type ProcessIdentity } from '../../deploy/dev/process-identity.ts'
import { spawnLeashed, type Leashed } from '../../deploy/dev/leash.ts'
import { startService } from '../support/process.ts'
import { until } from '../support/until.ts'

async function leashNode(t: TestContext, script: string): Promise<{ child: Leashed; lines: string[] }> {
  const lines: string[] = []
  const child = await spawnLeashed({ command: process.execPath, args: ['-e', script], graceMs: 300, onLine: (line) => lines.push(line) })
  t.after(() => child.signal('SIGKILL'))
  return { child, lines }
}

/** What still belongs to the session that a leashed process leads, itself and its watcher; as far as /proc tells (proc(5), field 6). */
function sessionOf(leader: number): string[] {
  if (!existsSync('/proc')) return []
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return session === String(leader) && state !== 'Z'
    } catch {
      // It ended between the two looks.
      return false
    }
  })
}

for (const kind of ['willing', 'stubborn']) {
  test(`a ${kind} process ends when its starter is killed with -9, and so does its watcher`, async (t) => {
    const starter = await startService(t, { file: 'test/dev/fixtures/starter.ts', args: [`--${kind}`] })
    const { text } = await starter.waitForLine(/^pid \d+$/)
    const grandchild: ProcessIdentity = identify(Number(text.slice(4)))
    t.after(() => isAlive(grandchild) && process.kill(grandchild.pid, 'SIGKILL'))
    assert.ok(isAlive(grandchild))
    if (existsSync('/proc')) assert.equal(sessionOf(grandchild.pid).length, 2)
    await starter.kill()
    await until(() => !isAlive(grandchild), { message: 'the grandchild to end' })
    await until(() => sessionOf(grandchild.pid).length === 0, { message: 'the watcher to end' })
  })
}

test('the pid, the exit code and the output are those of the process itself, and no watcher stays behind', async (t) => {
  const { child, lines } = await leashNode(t, 'console.log(process.pid); console.error("err"); process.exit(7)')
  assert.deepEqual(await child.ended, { code: 7, signal: null })
  assert.ok(child.hasEnded())
  assert.deepEqual(lines.sort(), [String(child.pid), 'err'].sort())
  await until(() => sessionOf(child.pid).length === 0, { message: 'the watcher to end' })
})

test('terminate asks, and kills what does not listen', async (t) => {
  const willing = await leashNode(t, 'process.on("SIGTERM", () => process.exit(3)); setInterval(() => {}, 1000); console.log("up")')
  const deaf = await leashNode(t, 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("up")')
  await until(() => willing.lines.length > 0 && deaf.lines.length > 0, { message: 'both to be up' })
  assert.deepEqual(await willing.child.terminate(10_000), { code: 3, signal: null })
  assert.deepEqual(await deaf.child.terminate(100), { code: null, signal: 'SIGKILL' })
})

test('a command that does not exist ends with 127, as a shell says it', async () => {
  const lines: string[] = []
  const child = await spawnLeashed({ command: 'posthouse-no-such-command', args: [], graceMs: 100, onLine: (line) => lines.push(line) })
  assert.equal((await child.ended).code, 127)
  assert.match(lines.join('\n'), /posthouse-no-such-command/)
})

test('a process id that is used again is another process', () => {
  const me = identify(process.pid)
  assert.ok(isAlive(me))
  assert.ok(me.startTicks === null || !isAlive({ ...me, startTicks: '1' }))
})
