import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { newClusterId } from '../../deploy/dev/kafka/data-folder.ts'
import { startLocalKafka, type LocalKafka } from '../../deploy/dev/kafka/kafka.ts'
import { quickRestartProperties } from '../../deploy/dev/kafka/server-properties.ts'
import { javaVersion, MissingToolError, requireJava } from '../../deploy/dev/kafka/tools.ts'
import { identify, isAlive } from '../../deploy/dev/process-identity.ts'
import { findLocalKafka, writeRunFile } from '../../deploy/dev/run-file.ts'
import { produceTo, testConnection, withAdmin } from '../support/kafka.ts'
import { startService } from '../support/process.ts'
import { readTopic } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'

const skip = await requireJava().then(() => false as const, (error: Error) => error.message)

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-kafka-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const connectionTo = ({ brokers }: LocalKafka) => testConnection({ brokers: [brokers] })

test('a broker keeps its data and its address over a stop and over a kill, and forgets all when asked', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  const start = async (fresh = false): Promise<LocalKafka> => {
    const kafka = await startLocalKafka({ folder, fresh, properties: quickRestartProperties })
    t.after(() => kafka.kill())
    return kafka
  }
  const first = await start()
  await withAdmin((admin) => admin.createTopics({ topics: [{ topic: 'kept' }] }), connectionTo(first))
  await produceTo('kept', [{ value: 'before the stop' }], connectionTo(first))
  await first.stop()
  assert.ok(!isAlive(identify(first.pid)))

  const second = await start()
  assert.equal(second.brokers, first.brokers)
  await produceTo('kept', [{ value: 'before the kill' }], connectionTo(second))
  await second.kill()

  const third = await start()
  assert.equal(third.brokers, first.brokers)
  const values = (await readTopic('kept', { connection: connectionTo(third) })).map(({ value }) => value?.toString())
  assert.deepEqual(values, ['before the stop', 'before the kill'])
  await third.stop()

  const fourth = await start(true)
  assert.ok(!(await withAdmin((admin) => admin.listTopics(), connectionTo(fourth))).includes('kept'))
})

test('a broker ends with its starter, killed with -9, and its folder can be used at once', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  const starter = await startService(t, { file: 'test/dev/fixtures/kafka-starter.ts', args: [folder] })
  const { fields } = await starter.waitForLine(/"brokers"/, 60_000)
  const broker = identify(Number(fields?.['pid']))
  t.after(() => isAlive(broker) && process.kill(broker.pid, 'SIGKILL'))
  assert.ok(isAlive(broker))
  await starter.kill()
  const next = await startLocalKafka({ folder })
  t.after(() => next.kill())
  await until(() => !isAlive(broker), { message: 'the broker to end' })
  assert.equal(next.brokers, fields?.['brokers'])
})

test('a port that is taken is told at once', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  const { port } = await startService(t, { file: 'test/dev/fixtures/listener.ts' }).then(async (listener) => {
    await listener.waitForLine(/listening/)
    return listener
  })
  await assert.rejects(startLocalKafka({ folder, port }), new RegExp(`127\\.0\\.0\\.1:${port}`))
})

test('a broker that cannot start says its last words', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  await assert.rejects(startLocalKafka({ folder, properties: { 'log.retention.ms': 'soon' } }), /log\.retention\.ms/)
  assert.ok(!existsSync(join(folder, 'data', 'meta.properties')), 'a folder that was not formatted whole is not there')
})

test('without Java the message names what to install and what else to do', async (t) => {
  const home = process.env['JAVA_HOME']
  t.after(() => {
    if (home === undefined) delete process.env['JAVA_HOME']
    else process.env['JAVA_HOME'] = home
  })
  process.env['JAVA_HOME'] = '/nonexistent'
  const folder = await temporaryFolder(t)
  await assert.rejects(startLocalKafka({ folder }), (error) => {
    assert.ok(error instanceof MissingToolError)
    assert.match(error.message, /Java 17.*openjdk-17-jre-headless.*KAFKA_BROKERS/)
    return true
  })
})

test('a cluster id cannot be taken for an option', () => {
  assert.match(newClusterId(Buffer.alloc(16, 0xff)), /^[A-Za-z0-9][\w-]{21}$/)
  assert.notEqual(newClusterId(), newClusterId())
})

test('the version of any Java is read', () => {
  assert.equal(javaVersion('openjdk version "17.0.15" 2025-04-15'), 17)
  assert.equal(javaVersion('openjdk version "21" 2023-09-19'), 21)
  assert.equal(javaVersion('java version "1.8.0_402"'), 8)
  assert.equal(javaVersion('no java here'), null)
})

test('a run file is believed while its process lives, and taken back by its own run only', async (t) => {
  const file = join(await temporaryFolder(t), 'run.json')
  assert.equal(findLocalKafka(file), null)
  const takeBack = await writeRunFile({ pid: process.pid, brokers: '127.0.0.1:1' }, file)
  assert.equal(findLocalKafka(file)?.brokers, '127.0.0.1:1')
  const takeLaterBack = await writeRunFile({ pid: process.ppid, brokers: '127.0.0.1:2' }, file)
  await takeBack()
  assert.equal(findLocalKafka(file)?.brokers, '127.0.0.1:2')
  await takeLaterBack()
  assert.equal(findLocalKafka(file), null)

  const ended = await startService(t, { file: 'test/dev/fixtures/listener.ts' })
  await writeRunFile({ pid: ended.pid, brokers: '127.0.0.1:3' }, file)
  assert.equal(findLocalKafka(file)?.pid, ended.pid)
  await ended.kill()
  assert.equal(findLocalKafka(file), null)
  await writeFile(file, '{')
  assert.throws(() => findLocalKafka(file), /delete it/)
})
