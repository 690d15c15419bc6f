import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'

const program = fileURLToPath(new URL('example-service.ts', import.meta.url))

type Run = { child: ChildProcess; said: (text: string) => Promise<void>; ended: Promise<{ code: number | null; log: string; said: string }> }

const run = (t: TestContext, mode: string, env: Record<string, string> = {}): Run => {
  const child = spawn(process.execPath, [program, mode], { env: { PATH: process.env['PATH'], KAFKA_BROKERS: 'kafka:9092', ...env }, stdio: 'pipe' })
  t.after(() => child.kill('SIGKILL'))
  let log = ''
  let said = ''
  const onSaid = new Set<() => void>()
  child.stdout.on('data', (chunk: Buffer) => { log += chunk.toString() })
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    for (const check of onSaid) check()
  })
  return {
    child,
    said: (text) => new Promise((resolve, reject) => {
      const check = (): void => { if (said.includes(text)) resolve() }
      onSaid.add(check)
      child.once('close', () => reject(new Error(`ended without saying "${text}": ${said}${log}`)))
      check()
    }),
    ended: once(child, 'close').then(([code]) => ({ code: code as number | null, log, said })),
  }
}

const limit = { timeout: 30_000, concurrency: 2 }

test('a service as a process', limit, async (t) => {
  await t.test('a wrong configuration ends with 78 and every problem on stderr', limit, async (t) => {
    const { code, said, log } = await run(t, '', { KAFKA_BROKERS: '', POSTHOUSE_HTTP_PORT: 'x' }).ended
    assert.equal(code, 78)
    assert.match(said, /POSTHOUSE_HTTP_PORT is "x"[^]*KAFKA_BROKERS is not set/)
    assert.equal(log, '')
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    await t.test(`${signal} closes and ends with 0`, limit, async (t) => {
      const { child, said, ended } = run(t, '')
      await said('running')
      child.kill(signal)
      const result = await ended
      assert.equal(result.code, 0, result.said)
      assert.match(result.said, /closed/)
      assert.ok(result.log.includes(`"reason":"${signal}"`) && result.log.includes('"msg":"stopped"'), result.log)
    })
  }

  await t.test('a second signal ends at once', limit, async (t) => {
    const { child, said, ended } = run(t, 'close-hangs')
    await said('running')
    child.kill('SIGTERM')
    await said('closing')
    child.kill('SIGTERM')
    assert.equal((await ended).code, 143)
  })

  await t.test('a start that waits gives up when asked to, and that is no failure', limit, async (t) => {
    const { child, said, ended } = run(t, 'wait-for-kafka')
    await said('start')
    child.kill('SIGTERM')
    assert.equal((await ended).code, 0)
  })

  for (const [mode, line] of [
    ['start-fails', 'cannot start'], ['consumer-dies', 'the consumer died'], ['throws-later', 'a bug'], ['rejects-later', 'a bug'],
  ] as const) {
    await t.test(`${mode}: logged as fatal, and 1`, limit, async (t) => {
      const { code, log } = await run(t, mode).ended
      assert.equal(code, 1)
      assert.ok(log.split('\n').some((one) => one.includes('"level":"fatal"') && one.includes(line)), log)
    })
  }

  await t.test('a service that failed is closed all the same', limit, async (t) => {
    assert.match((await run(t, 'consumer-dies').ended).said, /closed/)
  })

  await t.test('closing that fails ends with 1', limit, async (t) => {
    const { child, said, ended } = run(t, 'close-fails')
    await said('running')
    child.kill('SIGTERM')
    const { code, log } = await ended
    assert.equal(code, 1)
    assert.match(log, /cannot close/)
  })

  await t.test('with POSTHOUSE_END_WITH_STDIN the end of the pipe is a stop', limit, async (t) => {
    const { child, said, ended } = run(t, '', { POSTHOUSE_END_WITH_STDIN: '1' })
    await said('running')
    child.stdin!.end()
    const { code, log } = await ended
    assert.equal(code, 0)
    assert.match(log, /"reason":"standard input closed"/)
  })

  await t.test('without it, it is none', limit, async (t) => {
    const { child, said, ended } = run(t, '')
    await said('running')
    child.stdin!.end()
    child.kill('SIGTERM')
    assert.match((await ended).log, /"reason":"SIGTERM"/)
  })
})

test('a stop that does not end in time is ended', limit, async (t) => {
  const { child, said, ended } = run(t, 'close-hangs', { POSTHOUSE_DRAIN_TIMEOUT: '0s' })
  await said('running')
  child.kill('SIGTERM')
  const { code, log } = await ended
  assert.equal(code, 1)
  assert.match(log, /did not end in time/)
})
