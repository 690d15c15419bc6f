import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createLog, type Log, type LogLevel } from '../../shared/log/log.ts'
import { describeError, redactText } from '../../shared/log/redact.ts'

const capture = (level: LogLevel = 'info'): { log: Log; lines: () => Record<string, unknown>[]; raw: () => string } => {
  let written = ''
  const log = createLog({ service: 'delivery', level, destination: { write: (line: string) => { written += line } } })
  return { log, raw: () => written, lines: () => written.trimEnd().split('\n').filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>) }
}

test('a line is one JSON object with level, ISO time, service and fields', () => {
  const { log, lines } = capture()
  log.child({ partition: 3 }).info('joined', { generation: 7 })
  log.debug('not written')
  log.forKafka('warn', 'kafkajs: slow', { broker: 1 })
  const [joined, slow] = lines()
  assert.equal(lines().length, 2)
  assert.match(joined!['time'] as string, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  assert.deepEqual({ ...joined, time: 0, pid: 0 }, { level: 'info', time: 0, service: 'delivery', pid: 0, partition: 3, generation: 7, msg: 'joined' })
  assert.equal(slow!['level'], 'warn')
  assert.equal(log.writes('debug'), false)
})

test('secrets, header values, bodies and the rest of a URL do not get out, wherever a caller puts them', () => {
  const { log, raw } = capture()
  log.info('posting to https://user:hunter2@hooks.example.com:8443/T00/hunter2?token=hunter2#hunter2, "quoted https://a.example/hunter2"', {
    secret: 'hunter2', headers: { authorization: 'hunter2' }, subscription: { url: 'hunter2', secrets: ['hunter2'], id: 'sub_1' },
    list: [{ password: 'hunter2' }], bytes: Buffer.from('hunter2'), Authorization: 'hunter2', far: { a: { b: { c: { d: 'hunter2' } } } },
    deep: { er: { note: 'http://b.example/hunter2 and whsec_aHVudGVyMg==' } },
    error: Object.assign(new Error('connect to https://c.example/hunter2', { cause: new Error('https://d.example?hunter2') }), { request: 'hunter2', code: 'ECONNRESET' }),
  })
  log.error('again', { error: new Error('https://e.example/hunter2') })
  assert.ok(!raw().includes('hunter2'), raw())
  assert.ok(!raw().includes('aHVudGVyMg'), raw())
  for (const shown of ['https://hooks.example.com:8443/…', 'https://a.example/…', 'http://b.example/…', 'https://c.example/…', 'sub_1', 'ECONNRESET']) {
    assert.ok(raw().includes(shown), `${shown} not in ${raw()}`)
  }
})

test('text without URLs and secrets stays as it is', () => {
  for (const same of ['', 'https://', 'a://b/c', 'broker kafka-1:9092', 'https://host', '{"a":"\\u0000/"}']) assert.equal(redactText(same), same)
  assert.equal(redactText('https://host/'), 'https://host')
})

test('an error is described with its causes, without its own properties; anything else that was thrown too', () => {
  const error = Object.assign(new TypeError('broken', { cause: Object.assign(new Error('inner'), { code: 'E_INNER' }) }), { config: 'private' })
  assert.deepEqual(describeError(error), { type: 'TypeError', message: 'broken', cause: { type: 'Error', message: 'inner', code: 'E_INNER' } })
  assert.deepEqual(describeError('text'), { type: 'string', message: 'text' })
  const loop = new Error('loop')
  loop.cause = loop
  assert.equal(JSON.stringify(describeError(loop)).split('loop').length - 1, 5)
})

const program = `
  import { createLog } from ${JSON.stringify(new URL('../../shared/log/log.ts', import.meta.url).href)}
  const log = createLog({ service: 'x', level: 'info' })
`

test('what was logged last is written before the process ends, when flushed', { timeout: 20_000 }, async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${program}
    for (let i = 0; i < 2000; i++) log.info('line', { i })
    log.flush()
    process.exit(3)`], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  assert.equal(code, 3)
  assert.equal(output.trimEnd().split('\n').length, 2000)
})

test('a reader that stalls costs lines, neither memory without bound nor the end of the process', { timeout: 20_000 }, async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${program}
    const filler = 'x'.repeat(1000)
    for (let i = 0; i < 20000; i++) { log.info(filler); if (i % 1000 === 0) await new Promise(setImmediate) }
    log.flush()
    process.exit(log.dropped() > 1000 ? 4 : 5)`], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const [code] = await once(child, 'exit')
  assert.equal(code, 4)
})
