import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { ProcessEvent } from '../../deploy/dev/kept-process.ts'
import { restartDelayMs } from '../../deploy/dev/kept-process.ts'
import { startSupervisor, type Supervisor } from '../../deploy/dev/supervisor.ts'
import { until } from '../support/until.ts'

const file = 'test/dev/fixtures/restless.ts'

type Options = Omit<Parameters<typeof startSupervisor>[0], 'onEvent' | 'onLine'>

async function supervise(t: TestContext, options: Options): Promise<{ supervisor: Supervisor; events: ProcessEvent[]; lines: string[] }> {
  const events: ProcessEvent[] = []
  const lines: string[] = []
  const supervisor = await startSupervisor({
    ...options, onEvent: (event) => events.push(event), onLine: (name, line) => lines.push(`${name}: ${line}`),
  })
  t.after(() => supervisor.stop())
  return { supervisor, events, lines }
}

test('all run with their own environment, and all are stopped', async (t) => {
  const logFolder = await mkdtemp(join(tmpdir(), 'posthouse-logs-'))
  t.after(() => rm(logFolder, { recursive: true }))
  const { supervisor, events, lines } = await supervise(t, {
    logFolder,
    processes: [{ name: 'a', file, args: ['live'], env: { GREETING: 'hello' } }, { name: 'b', file, args: ['live'] }],
  })
  await until(() => lines.length === 2, { message: 'both to be up' })
  assert.deepEqual(lines.sort(), ['a: live hello', 'b: live '])
  assert.notEqual(supervisor.pidOf('a'), supervisor.pidOf('b'))
  await Promise.all([supervisor.stop(), supervisor.stop()])
  assert.deepEqual(lines.slice(2).sort(), ['a: going', 'b: going'])
  assert.equal(supervisor.pidOf('a'), null)
  assert.equal(await readFile(join(logFolder, 'a.log'), 'utf8'), 'live hello\ngoing\n')
  assert.deepEqual(events.map(({ type }) => type), ['started', 'started'])
})

test('one that dies is started again, after longer and longer waits', async (t) => {
  const { events } = await supervise(t, { processes: [{ name: 'a', file, args: ['die', '1'] }] })
  const died = () => events.filter((event) => event.type === 'died')
  await until(() => died().length >= 3, { message: 'three deaths' })
  assert.deepEqual(died().slice(0, 3), [200, 400, 800].map((restartInMs) => ({ type: 'died', name: 'a', end: 'exit code 1', restartInMs })))
  assert.deepEqual([1, 2, 6, 7, 100].map(restartDelayMs), [200, 400, 6_400, 10_000, 10_000])
})

test('one whose configuration is wrong is not started again', async (t) => {
  const { events } = await supervise(t, { processes: [{ name: 'a', file, args: ['die', '78'] }] })
  await until(() => events.length === 2, { message: 'its death' })
  assert.deepEqual(events[1], { type: 'died', name: 'a', end: 'exit code 78', restartInMs: null })
})

test('those of a kind are killed in turn and are back at once, and the others are left alone', async (t) => {
  const names = ['delivery-1', 'delivery-2', 'delivery-x', 'router']
  const { supervisor, events } = await supervise(t, { processes: names.map((name) => ({ name, file, args: ['live'] })) })
  const pids = names.map((name) => supervisor.pidOf(name))
  const end = supervisor.killEvery('delivery', 50)
  await until(() => supervisor.kills('delivery') >= 4, { message: 'four kills' })
  end()
  await until(() => supervisor.pidOf('delivery-1') && supervisor.pidOf('delivery-2'), { message: 'both to be back' })
  const killed = events.filter((event) => event.type === 'killed').map(({ name }) => name)
  assert.deepEqual(new Set(killed), new Set(['delivery-1', 'delivery-2']))
  assert.equal(supervisor.kills('delivery'), killed.length)
  assert.deepEqual(names.slice(2).map((name) => supervisor.pidOf(name)), pids.slice(2))
  assert.notEqual(supervisor.pidOf('delivery-1'), pids[0])
  assert.ok(!events.some(({ type }) => type === 'died'), 'a kill is no death')
  assert.throws(() => supervisor.killEvery('nothing', 50), /no process nothing to kill: name one of delivery-1/)
})

test('one that does not end when asked is killed, and that is told', async (t) => {
  const { supervisor, events, lines } = await supervise(t, { stopWaitMs: 200, processes: [{ name: 'a', file, args: ['linger'] }] })
  await until(() => lines.length > 0, { message: 'it to be up' })
  await supervisor.stop()
  assert.equal(events.at(-1)?.type, 'stop-timed-out')
})

test('one that waits for its next start is not started after a stop', async (t) => {
  const processes = [{ name: 'a', file, args: ['die', '1'] }]
  const { supervisor, events } = await supervise(t, { processes })
  const deathsIn = (of: readonly ProcessEvent[]) => of.filter(({ type }) => type === 'died').length
  await until(() => deathsIn(events) === 2, { message: 'two deaths' })
  await supervisor.stop()
  const countAtStop = events.length
  // Its next start was 400 ms away; another one waits 600 ms in all before its third death.
  const clock = await supervise(t, { processes })
  await until(() => deathsIn(clock.events) === 3, { message: 'three deaths of another' })
  assert.equal(events.length, countAtStop)
  assert.equal(supervisor.pidOf('a'), null)
})
