import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { version } from '../../shared/version.ts'
import { until } from '../support/until.ts'
import { expectCli, startCli } from './run-cli.ts'

test('help and version are data and end with 0; a noun without a verb says what there is and ends with 2', async () => {
  const [help, shown, noun] = await Promise.all([
    expectCli(0, ['subscriptions', 'create', '--help']), expectCli(0, ['--version']), expectCli(2, ['topics']),
  ])
  assert.match(help.stdout, /--url <url>/)
  assert.equal(help.stderr, '')
  assert.equal(shown.stdout, `${version}\n`)
  assert.equal(noun.stdout, '')
  assert.match(noun.stderr, /provision .*\n.*check /s)
})

test('what cannot be understood ends with 2, says what is meant, and names the help that helps', async () => {
  const [command, option, value, missing] = await Promise.all([
    expectCli(2, ['topcs']), expectCli(2, ['topics', 'check', '--yess']),
    expectCli(2, ['deliveries', 'tail', '--count', 'many', '--output', 'json']), expectCli(
      2, ['subscriptions', 'create', '--url', 'https://x.example/', '-o', 'jsonl'],
    ),
  ])
  assert.match(command.stderr, /^posthouse: unknown command 'topcs'\n.*Did you mean topics\?/)
  assert.match(option.stderr, /"posthouse topics check --help"/)
  assert.match(value.error().message, /--count.*whole number/)
  assert.equal(value.error().code, 'usage')
  assert.equal(value.error().hint, 'see "posthouse deliveries tail --help"')
  assert.match(missing.error().message, /--type/)
  for (const { stdout } of [command, option, value, missing]) assert.equal(stdout, '')
})

test('every mistake in the configuration is reported at once, with 78; no secret is quoted', async () => {
  const env = { KAFKA_BROKERS: '127.0.0.1', POSTHOUSE_PARTITONS: '3', POSTHOUSE_TIERS: '1m,10s', KAFKA_SASL_PASSWORD: 'hunter2' }
  const { stderr } = await expectCli(78, ['topics', 'check'], { env })
  assert.match(stderr, /KAFKA_BROKERS is "127\.0\.0\.1"/)
  assert.match(stderr, /did you mean POSTHOUSE_PARTITIONS/)
  assert.match(stderr, /KAFKA_SASL_PASSWORD is set but/)
  assert.doesNotMatch(stderr, /hunter2/)
})

test('config print shows values with their sources, redacted, also when they are wrong', async () => {
  const env = { KAFKA_BROKERS: '127.0.0.1:1', KAFKA_SASL_PASSWORD: 'hunter2', POSTHOUSE_PARTITIONS: 'many' }
  const { stdout, error, ...result } = await expectCli(78, ['config', 'print', '-o', 'json'], { env })
  const rows = new Map((result.json() as { name: string; value: string; source: string }[]).map((row) => [row.name, row]))
  assert.deepEqual([rows.get('KAFKA_SASL_PASSWORD')?.value, rows.get('KAFKA_SASL_PASSWORD')?.source], ['[set]', 'environment'])
  assert.deepEqual([rows.get('POSTHOUSE_PARTITIONS')?.value, rows.get('POSTHOUSE_HTTP_PORT')?.source], ['many', 'default'])
  assert.equal(error().code, 'configuration')
  assert.doesNotMatch(stdout, /hunter2/)
})

test('a Kafka that refuses ends with 69, as JSON where asked for', async () => {
  const { error, stdout } = await expectCli(69, ['subscriptions', 'list', '-o', 'json'], { env: { KAFKA_BROKERS: '127.0.0.1:1' } })
  assert.equal(error().code, 'unreachable')
  assert.match(error().message, /Kafka at 127\.0\.0\.1:1 cannot be reached.*ECONNREFUSED/)
  assert.match(error().hint ?? '', /KAFKA_BROKERS/)
  assert.equal(stdout, '')
})

test('a Kafka that takes connections and says nothing ends with 69 too; doctor says so as a finding', async (t) => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => silent.close())
  const env = { KAFKA_BROKERS: `127.0.0.1:${(silent.address() as AddressInfo).port}` }
  const begunAt = performance.now()
  const { stdout, json } = await expectCli(69, ['doctor', '-o', 'json'], { env })
  assert.ok(performance.now() - begunAt < 60_000, 'and not after the hour a service would wait')
  assert.deepEqual(
    (json() as { check: string; verdict: string }[]).map(({ check, verdict }) => [check, verdict]), [['kafka', 'FAIL']],
    stdout,
  )
})

test('Ctrl-C ends with 130 and SIGTERM with 143, without a word', async () => {
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) {
    const { child, ended, stderr } = startCli(['listen', '--port', '0'])
    await until(() => stderr().includes('listening on'))
    child.kill(signal)
    const result = await ended
    assert.equal(result.code, code)
    assert.match(result.stderr, /^posthouse: listening on http:\/\/127\.0\.0\.1:\d+\n$/)
  }
})

test('Ctrl-C ends a command that waits for standard input', { timeout: 60_000 }, async (t) => {
  const { child, ended } = startCli(['events', 'send', '-'], { input: null })
  t.after(() => child.kill('SIGKILL'))
  child.stdin!.on('error', () => undefined)
  // More than a pipe holds: once it is written, the command is reading.
  await new Promise((resolve) => child.stdin!.write(' '.repeat(1024 * 1024), resolve))
  child.kill('SIGINT')
  assert.equal((await ended).code, 130)
})

test('a wait that no timer can hold is refused instead of being over at once', async () => {
  const [timeout, delay] = await Promise.all([
    expectCli(2, ['events', 'send', '--type', 'a', '--data', '{}', '--wait', '--timeout', '30d']), expectCli(2, ['listen', '--delay', '30d']),
  ])
  for (const { stderr } of [timeout, delay]) assert.match(stderr, /at most 24d/)
})

test('a header that is not understood is not repeated, as it may be a token', async () => {
  const create = ['subscriptions', 'create', '--url', 'https://x.example/', '--type', 'a']
  const { stderr } = await expectCli(2, [...create, '--header', 'Authorization Bearer t0ken'])
  assert.match(stderr, /--header is not a name and a value/)
  assert.doesNotMatch(stderr, /t0ken/)
})

test('an old Node.js is told what to do', async () => {
  const pretend = 'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "22.1.0" })'
  const { stderr, stdout } = await expectCli(78, ['--version'], { nodeArgs: ['--import', pretend] })
  assert.match(stderr, /Node\.js 22\.1\.0.*needs Node\.js 24 or newer.*npm ci/)
  assert.equal(stdout, '')
})
