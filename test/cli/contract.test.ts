import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RetryContract } from '../../shared/contract/contract.ts'
import { faultsOf } from '../contract/sample.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { expectCli, installationFor } from './run-cli.ts'

const { skip } = kafkaForTests()

/** No Kafka is there: nothing listens on this port. */
const nowhere = { KAFKA_BROKERS: '127.0.0.1:1' }

test('the contract of the defaults needs no Kafka, and is the same as Markdown and as JSON', async () => {
  const [text, json] = await Promise.all([expectCli(0, ['contract'], { env: nowhere }), expectCli(0, ['contract', '--output', 'json'], { env: nowhere })])
  assert.deepEqual([...text.stdout.matchAll(/^## (.*)$/gm)].map(([, title]) => title), [
    'Context', 'Failure classification', 'States', 'Backoff', 'At least once', 'Idempotency', 'Dead letters', 'Alerts', 'Hand-offs',
  ])
  const contract = json.json() as RetryContract
  assert.deepEqual(faultsOf(contract), [])
  assert.deepEqual([contract.subject, contract.attempts.length, contract.totalTimeBudget.nominalMs], [{ kind: 'defaults' }, 8, 4956 * 60_000])
  assert.ok(text.stdout.includes('82.6 h'))
  assert.deepEqual([contract.deadLetters.topic, contract.deadLetters.retentionMs], ['webhooks.dlq', 30 * 86_400_000])
})

test('it goes by the settings, and wrong ones are told', async () => {
  const env = { ...nowhere, POSTHOUSE_RETRY_SCHEDULE: '1m,2m', POSTHOUSE_TOPIC_PREFIX: 'hooks.', POSTHOUSE_DELIVERY_EXPIRY: '2d', POSTHOUSE_ENDPOINT_CAP_MAX: '32' }
  const contract = (await expectCli(0, ['contract', '-o', 'json'], { env })).json() as RetryContract
  assert.deepEqual(
    [contract.attempts.length, contract.deadLetters.topic, contract.context.deadline.deliveryMs, contract.policy.scheduleMs],
    [3, 'hooks.dlq', 2 * 86_400_000, [60_000, 120_000]],
  )
  assert.match(contract.context.blastRadius.join(' '), /10 to 32 requests/)
  await expectCli(78, ['contract'], { env: { ...env, POSTHOUSE_RETRY_SCHEDULE: 'soon' } })
})

test('the contract of a subscription is of the policy it has now', { skip }, async (t) => {
  const { expect } = await installationFor(t, 'cli-contract', { provisioned: true })
  const { id } = (await expect(0, [
    'subscriptions', 'create', '--url', 'https://hooks.example.com/in?token=t0ken', '--type', 'order.*', '--tenant', 'acme', '--scheme', 'standard',
    '--strategy', 'exponential', '--base', '30s', '--max', '1h', '--max-attempts', '5', '--jitter', 'full', '--timeout', '5s', '--classify', '404=permanent', '-o', 'json',
  ])).json() as { readonly id: string }
  const [json, text] = await Promise.all([expect(0, ['contract', '--subscription', id, '-o', 'json']), expect(0, ['contract', '--subscription', id])])
  const contract = json.json() as RetryContract
  assert.deepEqual(faultsOf(contract), [])
  assert.ok(contract.subject.kind === 'subscription' && contract.subject.id === id && contract.subject.tenant === 'acme' && contract.subject.host === 'hooks.example.com')
  // 30 s, 1, 2 and 4 min, each from nothing to twice as long (exponential is adaptive), and five timeouts.
  assert.deepEqual(
    [contract.attempts.length, contract.totalTimeBudget.bestMs, contract.totalTimeBudget.nominalMs, contract.totalTimeBudget.worstMs],
    [5, 0, 450_000, 925_000],
  )
  const rule = contract.classification.find((one) => one.on === 'status' && one.from === 404)
  assert.deepEqual([rule?.class, rule?.leadsTo], ['permanent', 'permanent_failure'])
  assert.ok(contract.idempotency.key.headers.includes('webhook-id'))
  for (const { stdout } of [json, text]) assert.ok(!stdout.includes('t0ken'))
  assert.match(text.stdout, /doubling|base x 2/)

  // What is not sound is not written, whichever way it comes; what is says how long it may take.
  const tooLong = await expect(2, ['subscriptions', 'update', id, '--max-attempts', '100', '--max', '24h', '-o', 'json'])
  assert.match(tooLong.error().message, /more than 14d/)
  const file = (policy: object) => JSON.stringify([{ url: 'https://hooks.example.com/in?token=t0ken', tenant: 'acme', eventTypes: ['order.*'], policy }])
  await expect(2, ['subscriptions', 'apply', '-f', '-', '--dry-run'], { input: file({ timeout: '31s' }) })
  const planned = await expect(0, ['subscriptions', 'apply', '-f', '-', '--dry-run'], { input: file({ schedule: ['1m', '1h'], timeout: '5s' }) })
  assert.match(planned.stdout, /3 attempts after 1m 1h, additive jitter, timeout 5s; 61m in all, at worst 68m/)

  await expect(0, ['subscriptions', 'update', id, '--no-classify', '--max-attempts', '2'])
  const changed = (await expect(0, ['contract', '--subscription', id, '-o', 'json'])).json() as RetryContract
  assert.deepEqual([changed.attempts.length, changed.policy.statusClasses, changed.policy.baseMs], [2, [], 30_000])
  assert.equal((await expect(3, ['contract', '--subscription', 'sub_unknown', '-o', 'json'])).error().code, 'not_found')
})
