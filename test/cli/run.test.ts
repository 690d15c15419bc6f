import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deleteGroupAfter, kafkaForTests } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { expectCli, installationFor } from './run-cli.ts'

const { skip } = kafkaForTests()

test('run starts no service that is not there, and none that is configured wrongly', async () => {
  const env = { KAFKA_BROKERS: 'nowhere' }
  const [unknown, ...wrong] = await Promise.all([
    expectCli(2, ['run', 'mailer'], { env }),
    ...['router', 'delivery', 'retry-tier'].map((name) => expectCli(78, ['run', name], { env })),
  ])
  assert.match(unknown.stderr, /router, delivery, retry-tier/)
  for (const { stderr } of wrong) assert.match(stderr, /KAFKA_BROKERS is "nowhere"/)
})

test('run is the service: it logs as JSON, and ends with 0 when SIGTERM asks it to', { skip }, async (t) => {
  const { env, start } = await installationFor(t, 'cli-run', { provisioned: true })
  for (const suffix of ['soon', '10s', '1m']) deleteGroupAfter(t, `${env['POSTHOUSE_GROUP_PREFIX']}.retry.${suffix}`)
  const service = start(['run', 'retry-tier'], { env: { POSTHOUSE_HTTP_PORT: '0' } })
  t.after(() => service.child.kill('SIGKILL'))
  await until(() => service.stdout().includes('"msg":"serving"'), { deadlineMs: 30_000, message: service.stdout })
  service.child.kill('SIGTERM')
  const { code, lines } = await service.ended
  assert.equal(code, 0)
  assert.equal((lines().at(-1) as { msg: string }).msg, 'stopped')
})
