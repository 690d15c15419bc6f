import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { effectiveEnvironment, readSettings } from '../../cli/settings.ts'
import { findLocalKafka, writeRunFile } from '../../deploy/dev/run-file.ts'

test('a local run gives its Kafka and settings below the environment; a named Kafka puts all of it aside', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-cli-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'run.json')
  const find = () => findLocalKafka(file)
  const environment = { POSTHOUSE_ALLOW_HTTP: 'true', POSTHOUSE_TIERS: '1s,2s', PATH: '/evil' }
  const takeBack = await writeRunFile({ pid: process.pid, brokers: '127.0.0.1:1234', environment }, file)

  const local = effectiveEnvironment({ POSTHOUSE_TIERS: '3s,4s', PATH: '/bin', KAFKA_BROKERS: ' ' }, find)
  assert.deepEqual([...local.localNames].sort(), ['KAFKA_BROKERS', 'POSTHOUSE_ALLOW_HTTP'])
  const { config } = readSettings(local)
  assert.deepEqual(config.kafka.brokers, ['127.0.0.1:1234'])
  assert.equal(config.safety.allowsHttp, true)
  assert.deepEqual(config.tiersMs, [3_000, 4_000])
  assert.equal(local.env['PATH'], '/bin')

  const named = effectiveEnvironment({ KAFKA_BROKERS: '10.0.0.1:9092' }, find)
  assert.deepEqual([named.local, named.localNames.size, named.env['POSTHOUSE_ALLOW_HTTP']], [null, 0, undefined])

  await takeBack()
  assert.throws(() => readSettings(effectiveEnvironment({}, find)), /KAFKA_BROKERS is not set/)
})
