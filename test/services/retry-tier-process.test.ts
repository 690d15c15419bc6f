import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration } from '../../shared/domain/duration.ts'
import { membersOf, waitingFor } from '../../services/retry-tier/health.ts'
import { reasonToRestart } from '../../shared/kafka-service/answering.ts'
import type { RetryTier } from '../../services/retry-tier/retry-tier.ts'
import { kafkaForTests, testTopicPrefix } from '../support/kafka.ts'
import { startService } from '../support/process.ts'
import { until } from '../support/until.ts'
import { openRetryLab, type RetryLab } from './retry-tier-lab.ts'

const { skip, brokers } = kafkaForTests()
const file = 'services/retry-tier/main.ts'

function environment(lab: Pick<RetryLab, 'prefix' | 'groupPrefix'>, tiersMs: readonly number[]): Record<string, string> {
  return {
    KAFKA_BROKERS: brokers.join(','), POSTHOUSE_TOPIC_PREFIX: lab.prefix, POSTHOUSE_GROUP_PREFIX: lab.groupPrefix,
    POSTHOUSE_TIERS: tiersMs.map(formatDuration).join(','), POSTHOUSE_HTTP_HOST: '127.0.0.1',
  }
}

test('killed in mid-wait and started again: nothing is lost, nothing is early', { skip }, async (t) => {
  const tiersMs = [1_000, 2_000, 5_000]
  const lab = await openRetryLab(t, tiersMs)
  const env = environment(lab, tiersMs)
  const first = await startService(t, { file, env })
  await first.waitReady()
  const dueAt = Math.ceil(lab.brokerTime.nowForDue()) + 6_500
  const put = async (count: number): Promise<void> => {
    for (let sent = 0; sent < count; sent += 1) {
      await lab.put(['1s', '2s', '5s', 'soon'][sent % 4]!, { value: Buffer.from(`${count} ${sent}`), key: `ep_${sent}`, dueAt })
    }
  }
  await put(40)
  // Some are on their second hop by now, and some wait in memory.
  await until(async () => (await lab.admin.fetchTopicOffsets(lab.names.tier(2_000))).some(({ high }) => Number(high) > 5))
  await first.kill()
  await put(41)
  const second = await startService(t, { file, env })
  await second.waitReady()
  const seen = new Set<string>()
  await until(async () => {
    for (const { value } of await lab.deliveries(1)) seen.add(String(value))
    return seen.size === 81
  }, { deadlineMs: 60_000, intervalMs: 500, message: () => `81 deliveries (there are ${seen.size})` })
  for (const { timestamp } of await lab.deliveries(81)) assert.ok(timestamp >= dueAt, `${dueAt - timestamp} ms early`)

  const text = await (await fetch(`${second.url}/metrics`)).text()
  for (const series of ['posthouse_retry_depth_records{tier="soon"} 0', 'posthouse_retry_rejected_total{tier="5s",reason="null_value"} 0', 'posthouse_retry_owned_partitions{tier="2s"} 2']) {
    assert.ok(text.includes(`${series}\n`), series)
  }
  assert.equal((await fetch(`${second.url}/livez`)).status, 200)
  assert.equal((await second.terminate()).code, 0)
})

test('SIGTERM in mid-wait: it ends by itself, and what was written onward is not written again', { skip }, async (t) => {
  const tiersMs = [1_000, 2_000]
  const lab = await openRetryLab(t, tiersMs)
  const env = environment(lab, tiersMs)
  const first = await startService(t, { file, env })
  await first.waitReady()
  let sent = 0
  for (; sent < 60; sent += 1) await lab.put(['1s', '2s', 'soon'][sent % 3]!, { value: Buffer.from(String(sent)), dueAt: Math.ceil(lab.brokerTime.nowForDue()) + 1_500 + sent * 20 })
  await lab.deliveries(10)
  assert.equal((await first.terminate()).code, 0)
  const second = await startService(t, { file, env })
  await second.waitReady()
  const deliveries = await lab.deliveries(sent)
  await second.terminate()
  assert.deepEqual(deliveries.map(({ value }) => Number(String(value))).toSorted((a, b) => a - b), Array.from({ length: sent }, (_, index) => index))
})

test('topics that are missing are named at the start, with what to do', { skip }, async (t) => {
  const prefix = testTopicPrefix('retry-tier')
  const service = await startService(t, { file, env: environment({ prefix, groupPrefix: 'test.none' }, [1_000, 2_000]) })
  assert.equal((await service.ended).code, 1)
  const text = service.lines.map((line) => line.text).join('\n')
  for (const topic of ['deliveries', 'rejected', 'retry.soon', 'retry.1s', 'retry.2s']) assert.ok(text.includes(`${prefix}${topic} does not exist`), topic)
  assert.match(text, /posthouse topics/)
})

test('brokers that are away: alive, not ready, and a stop is heard', async (t) => {
  const service = await startService(t, { file, env: { ...environment({ prefix: 'x.', groupPrefix: 'x' }, [1_000, 2_000]), KAFKA_BROKERS: '127.0.0.1:1' } })
  await service.waitForLine(/listening/)
  await service.waitForLine(/Kafka does not answer/, 30_000)
  assert.equal((await fetch(`${service.url}/readyz`)).status, 503)
  assert.equal((await fetch(`${service.url}/livez`)).status, 200)
  assert.equal((await service.terminate()).code, 0)
})

/** A tier of which only its membership is asked. */
function memberOf({ heartbeatAt = 0, joined = true }: { heartbeatAt?: number | null; joined?: boolean } = {}): RetryTier {
  const consumer = { isJoined: () => joined, lastHeartbeatAt: () => heartbeatAt }
  return { tiers: () => [{ suffix: '1s', startedAt: 0, consumer }], problems: () => [] } as unknown as RetryTier
}

test('a restart is asked for only where the brokers answered all the while', () => {
  const silent = membersOf(memberOf({ heartbeatAt: 100_000 }))
  assert.equal(reasonToRestart(silent, null, 10_000), null)
  assert.equal(reasonToRestart(silent, { since: 0, lastAt: 130_000 }, 10_000), null)
  assert.match(reasonToRestart(silent, { since: 0, lastAt: 131_000 }, 10_000) ?? '', /1s has had no heartbeat for 31 s/)
  // Back from an outage: members get their time.
  assert.equal(reasonToRestart(silent, { since: 900_000, lastAt: 930_000 }, 10_000), null)
  assert.notEqual(reasonToRestart(silent, { since: 900_000, lastAt: 931_000 }, 10_000), null)
  // Never joined: the time counts from its start.
  assert.notEqual(reasonToRestart(membersOf(memberOf({ heartbeatAt: null })), { since: 0, lastAt: 31_000 }, 10_000), null)
})

test('ready means joined, and hearing from the coordinator', () => {
  assert.deepEqual(waitingFor(memberOf({ heartbeatAt: 1_000 }), 2_000), [])
  assert.equal(waitingFor(memberOf({ joined: false }), 2_000).length, 1)
  assert.equal(waitingFor(memberOf({ heartbeatAt: 1_000 }), 60_000).length, 1)
})
