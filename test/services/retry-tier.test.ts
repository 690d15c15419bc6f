import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { dueHeader } from '../../shared/records/record-headers.ts'
import { kafkaForTests, produceTo } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'
import { openRetryLab, type Running } from './retry-tier-lab.ts'

const { skip } = kafkaForTests()
const dayMs = 86_400_000

/** How late something may be on a machine that is busy with other tests; the design's own bound is the allowance and the poll. */
const slackMs = 5_000

/** Node warns and fires at once where a timer is longer than 2^31 - 1 ms. */
function watchWarnings(t: TestContext): Error[] {
  const warnings: Error[] = []
  const watch = (warning: Error): void => { warnings.push(warning) }
  process.on('warning', watch)
  t.after(() => process.off('warning', watch))
  return warnings
}

function assertNeverEarly({ hops, failures }: Running): void {
  assert.deepEqual(failures, [])
  for (const hop of hops) assert.ok((hop.latenessMs ?? 0) >= 0 && (hop.dueLatenessMs ?? 0) >= 0, `early: ${JSON.stringify(hop)}`)
}

test('a wait is cut into hops and ends never early, with the same key, bytes and headers', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000, 2_000, 5_000])
  const running = await lab.start()
  const value = Buffer.from([0xc3, 0x01, 0x00, 0xff, 0x80])
  const key = 'ep_hops'
  const dueAt = Math.ceil(lab.brokerTime.nowForDue()) + 4_300
  const headers = [{ name: 'parked', value: '2' }, { name: 'bytes', value: Buffer.from([0, 255]) }, { name: 'dup', value: 'a' }, { name: 'dup', value: 'b' }]
  await lab.put('2s', { key, value, dueAt, headers })
  // Others that are due at all kinds of distances from the end of their stays.
  const otherDueAts = Array.from({ length: 30 }, (_, index) => dueAt - 2_000 + index * 130)
  await Promise.all(otherDueAts.map((otherDueAt) => lab.put('1s', { key: 'ep_other', value: Buffer.from(String(otherDueAt)), dueAt: otherDueAt })))

  const deliveries = await lab.deliveries(1 + otherDueAts.length)
  assert.equal(deliveries.length, 1 + otherDueAts.length)
  for (const other of deliveries.filter((one) => one.key?.toString() === 'ep_other')) {
    assert.ok(other.timestamp >= Number(String(other.value)), `${Number(String(other.value)) - other.timestamp} ms early`)
  }
  const delivery = deliveries.find((one) => one.key?.toString() === key)
  assert.ok(delivery)
  assert.ok(delivery.timestamp >= dueAt, `${dueAt - delivery.timestamp} ms early`)
  assert.ok(delivery.timestamp <= dueAt + slackMs, `${delivery.timestamp - dueAt} ms late`)
  assert.deepEqual(delivery.value, value)
  assert.equal(delivery.key?.toString(), key)
  assert.deepEqual({ ...delivery.headers }, {
    [dueHeader]: Buffer.from(String(dueAt)), parked: Buffer.from('2'), bytes: Buffer.from([0, 255]), dup: [Buffer.from('a'), Buffer.from('b')],
  })
  assert.ok(running.hops.filter(({ to }) => to !== 'deliveries').length >= 2, JSON.stringify(running.hops))
  assertNeverEarly(running)
})

test('a tier that is configured no longer is served until it is empty, and nothing is sent to it', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000, 2_000])
  await lab.createTiers([3_000])
  const dueAt = Math.ceil(lab.brokerTime.nowForDue()) + 7_000
  await lab.put('3s', { dueAt })
  const running = await lab.start()
  const [delivery] = await lab.deliveries(1)
  assert.ok(delivery && delivery.timestamp >= dueAt)
  assert.equal((await readTopic(lab.names.tier(3_000))).length, 1)
  assert.ok(running.hops.some(({ from }) => from === '3s') && running.hops.some(({ from }) => from === '2s'))
})

test('a configured tier whose topic does not exist is not used; once it is made, it is served and used', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000])
  const running = await lab.start({ configuredDelaysMs: [1_000, 3_000], lookIntervalMs: 200 })
  const farOff = Math.ceil(lab.brokerTime.nowForDue()) + 5_000
  await lab.put('1s', { dueAt: farOff })
  await until(() => running.hops.filter(({ from, to }) => from === '1s' && to === '1s').length >= 2)
  assert.deepEqual(running.retryTier.problems(), [])
  await lab.createTiers([3_000])
  await until(() => running.retryTier.tiers().some(({ suffix, consumer }) => suffix === '3s' && consumer.isJoined()), { deadlineMs: 20_000 })
  await lab.put('1s', { dueAt: Math.ceil(lab.brokerTime.nowForDue()) + 6_000 })
  await until(() => running.hops.some(({ to }) => to === '3s'), { deadlineMs: 20_000 })
  await lab.deliveries(2)
  assertNeverEarly(running)
})

test('a record without a readable due time is due when its stay ends', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000, 2_000])
  // An acknowledgement first, so that none of them is taken to learn the brokers' time.
  const running = await lab.start({ brokerTime: lab.brokerTime })
  const appendedAt = [
    await lab.put('2s', { value: Buffer.from('none') }),
    await lab.put('2s', { value: Buffer.from('odd'), headers: [{ name: dueHeader, value: 'tomorrow' }] }),
    await lab.put('2s', { value: Buffer.from('empty'), headers: [{ name: dueHeader, value: '' }] }),
  ]
  await lab.put('soon', { value: Buffer.from('soon') })
  const deliveries = await lab.deliveries(4)
  for (const [index, text] of ['none', 'odd', 'empty'].entries()) {
    const delivery = deliveries.find(({ value }) => value?.toString() === text)
    assert.ok(delivery && delivery.timestamp >= appendedAt[index]! + 2_000)
  }
  assert.deepEqual(running.hops.map(({ to }) => to), ['deliveries', 'deliveries', 'deliveries', 'deliveries'])
  assertNeverEarly(running)
})

test('due in 30 days: it keeps hopping, and timers never overflow', { skip }, async (t) => {
  const warnings = watchWarnings(t)
  const lab = await openRetryLab(t, [1_000])
  await lab.createTiers([30 * dayMs])
  const running = await lab.start({ brokerTime: lab.brokerTime })
  const dueAt = Math.ceil(lab.brokerTime.nowForDue()) + 30 * dayMs
  await lab.put('1s', { dueAt })
  // In a tier that is longer than a timer can be.
  await lab.put('30d', { dueAt: dueAt + dayMs })
  await lab.put('soon', { dueAt: dueAt + 2 * dayMs })
  await until(() => running.hops.length >= 6, { deadlineMs: 30_000 })
  // It does not fill the memory of soon meanwhile.
  assert.ok(running.hops.some(({ from }) => from === 'soon'))
  await until(() => running.retryTier.tiers().find(({ suffix }) => suffix === '30d')?.waitingCount() === 1)
  assert.ok(running.hops.every(({ from, to }) => from !== '30d' && to === '1s'), JSON.stringify(running.hops))
  assert.deepEqual(warnings.map(({ name }) => name), [])
  assertNeverEarly(running)
})

test('soon gives in due order across partitions', { skip }, async (t) => {
  const lab = await openRetryLab(t, [10_000], { partitions: 3 })
  const running = await lab.start({ brokerTime: lab.brokerTime })
  const from = Math.ceil(lab.brokerTime.nowForDue()) + 2_500
  // Written in another order, spread over partitions, far enough apart that no two share a batch.
  const places = [7, 2, 9, 0, 4, 1, 8, 3, 6, 5]
  for (const [index, place] of places.entries()) {
    await lab.put('soon', { key: 'ep_one', value: Buffer.from(String(place)), dueAt: from + place * 100, partition: index % 3 })
  }
  const deliveries = await lab.deliveries(places.length)
  assert.deepEqual(deliveries.map(({ value }) => value?.toString()), ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
  for (const { value, timestamp } of deliveries) assert.ok(timestamp >= from + Number(value?.toString()) * 100)
  assertNeverEarly(running)
})

test('a machine whose clock is an hour ahead, or behind, is neither early nor late', { skip }, async (t) => {
  for (const skewMs of [3_600_000, -3_600_000]) {
    await t.test(skewMs > 0 ? 'ahead' : 'behind', async (t) => {
      const lab = await openRetryLab(t, [1_000, 2_000])
      const dueAt = Math.ceil(lab.brokerTime.nowForDue()) + 3_000
      for (const suffix of ['1s', 'soon']) await lab.put(suffix, { key: suffix, dueAt })
      // The first of its tier, so it is what the clock is learned from.
      const appendedAt = await lab.put('2s', { key: 'no due time' })
      await lab.start({ brokerTime: createBrokerTime({ wallNow: () => Date.now() + skewMs }) })
      const deliveries = await lab.deliveries(3)
      for (const { key, timestamp } of deliveries) {
        const wantedAt = key?.toString() === 'no due time' ? appendedAt + 2_000 : dueAt
        assert.ok(timestamp >= wantedAt, `${key?.toString()}: ${wantedAt - timestamp} ms early`)
        assert.ok(timestamp <= dueAt + slackMs + 5_000, `${key?.toString()}: ${timestamp - wantedAt} ms late`)
      }
    })
  }
})

test('what is no delivery is passed on by its bytes; without a value it goes to rejected', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000])
  const running = await lab.start()
  await lab.put('1s', { value: null, headers: [{ name: 'trace', value: 'x' }] })
  await lab.put('1s', { value: Buffer.from('not ours'), key: 'odd' })
  await lab.put('1s', { value: Buffer.alloc(0), key: 'empty' })
  const deliveries = await lab.deliveries(2)
  assert.deepEqual(new Map(deliveries.map(({ key, value }) => [key?.toString(), value?.toString()])), new Map([['empty', ''], ['odd', 'not ours']]))
  await until(() => running.hops.some(({ to }) => to === 'rejected'))
  const rejected = await readTopic(lab.names.rejected)
  assert.equal(rejected.length, 2, 'the clock record of the lab, and the one without a value')
  const text = await running.registry.metrics()
  assert.match(text, /posthouse_retry_rejected_total\{tier="1s",reason="null_value"\} 1\n/)
})

test('a topic that keeps the producer\'s timestamps is not served, and says so', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000])
  await lab.admin.createTopics({ topics: [{ topic: lab.names.tier(2_000), configEntries: [{ name: 'message.timestamp.type', value: 'CreateTime' }] }] })
  await produceTo(lab.names.tier(2_000), [{ value: 'from 1970', timestamp: 1 }])
  const running = await lab.start()
  assert.deepEqual(running.retryTier.tiers().map(({ suffix }) => suffix).sort(), ['1s', 'soon'])
  assert.match(running.retryTier.problems().join('\n'), /retry\.2s has message\.timestamp\.type=CreateTime.*LogAppendTime/)
})

test('a process limited to some tiers serves those', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000, 2_000])
  const running = await lab.start({ servedSuffixes: ['2s', '7s'] })
  assert.deepEqual(running.retryTier.tiers().map(({ suffix }) => suffix), ['2s'])
})

test('a record too large to be written again goes to rejected and holds up nothing', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000])
  // What the brokers take, and our producer does not.
  await produceTo(lab.names.retry('1s'), [{ key: 'large', value: Buffer.alloc(1_030_000, 1), partition: 0 }, { key: 'small', value: 'x', partition: 0 }])
  const running = await lab.start({ brokerTime: lab.brokerTime })
  const [delivery] = await lab.deliveries(1)
  assert.equal(delivery?.key?.toString(), 'small')
  await until(() => running.hops.some(({ to }) => to === 'rejected'))
  const rejected = (await readTopic(lab.names.rejected)).find(({ key }) => key?.toString() === 'large')
  assert.equal(rejected?.header('posthouse-reason'), 'too_large')
})

test('a second process takes its share over in mid-wait, and gives it back when it leaves; nothing is lost', { skip }, async (t) => {
  const lab = await openRetryLab(t, [1_000, 2_000], { partitions: 4 })
  const first = await lab.start()
  const owned = (running: Running, suffix: string): number =>
    running.retryTier.tiers().find((tier) => tier.suffix === suffix && tier.consumer.isJoined())?.consumer.partitions().length ?? 0
  let sent = 0
  let isSending = true
  const sending = (async () => {
    while (isSending) {
      const dueAt = Math.ceil(lab.brokerTime.nowForDue()) + 2_500
      await Promise.all(['1s', '2s', 'soon'].map((suffix) => lab.put(suffix, { value: Buffer.from(`${sent++} ${dueAt}`), dueAt, partition: sent % 4 })))
    }
  })()
  await until(() => sent > 50)
  const second = await lab.start()
  await until(() => ['1s', '2s', 'soon'].every((suffix) => owned(first, suffix) === 2 && owned(second, suffix) === 2), { deadlineMs: 30_000 })
  await until(() => second.hops.length > 30, { deadlineMs: 30_000 })
  await second.close()
  await until(() => ['1s', '2s', 'soon'].every((suffix) => owned(first, suffix) === 4), { deadlineMs: 30_000 })
  isSending = false
  await sending
  const seen = new Set<string>()
  await until(async () => {
    for (const { value } of await lab.deliveries(sent)) seen.add(String(value))
    return seen.size === sent
  }, { deadlineMs: 30_000, intervalMs: 500, message: () => `${sent} different deliveries (there are ${seen.size})` })
  for (const { value, timestamp } of await lab.deliveries(sent)) assert.ok(timestamp >= Number(String(value).split(' ')[1]), `early: ${String(value)}`)
  assertNeverEarly(first)
  assertNeverEarly(second)
})

test('a partition that is full of what waits keeps nothing in the others from coming out', { skip }, async (t) => {
  const delayMs = 6_000
  const lab = await openRetryLab(t, [delayMs], { partitions: 3 })
  const value = Buffer.alloc(4096)
  const fill = (key: string, partition: number) => Promise.all(Array.from({ length: 600 }, () => lab.put('6s', { key, value, partition })))
  const [firstAt = 0] = await fill('ep_early', 2)
  await until(() => lab.brokerTime.nowForWait() > firstAt + 4_000)
  await Promise.all([fill('ep_late', 0), fill('ep_late', 1)])
  // Only now, so that the first fetch of each partition brings as much as it may.
  const running = await lab.start({ windowBytes: 4 * 1024 * 1024 })
  const deliveries = await lab.deliveries(1_800)
  const timesOf = (key: string) => deliveries.filter((one) => one.key?.toString() === key).map(({ timestamp }) => timestamp)
  assert.ok(Math.max(...timesOf('ep_early')) < Math.min(...timesOf('ep_late')), 'the early ones came out before the late ones were due')
  assertNeverEarly(running)
})
