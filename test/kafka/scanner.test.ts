import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createKafka } from '../../shared/kafka/client.ts'
import { openScanner, readBackwards, type ScanRange, type Scanner, type ScannedRecord } from '../../shared/kafka/scanner.ts'
import { createTestTopic, kafkaForTests, produceTo, testConnection, testTopic, withAdmin } from '../support/kafka.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const { skip } = kafkaForTests()

function scannerFor(t: TestContext, options: Partial<Parameters<typeof openScanner>[0]> = {}): Scanner {
  const scanner = openScanner({ connection: testConnection(), ...options })
  t.after(() => scanner.close())
  return scanner
}

async function all(source: AsyncIterable<readonly ScannedRecord[]>): Promise<ScannedRecord[]> {
  const records: ScannedRecord[] = []
  for await (const some of source) records.push(...some)
  return records
}

const texts = (records: readonly ScannedRecord[]): (string | undefined)[] => records.map(({ value }) => value?.toString())
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => ({ value: String(from + at), partition: 0 }))

test('a range ends where the topic ended when it was asked for, forwards and backwards', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'scan', { partitions: 2 })
  const scanner = scannerFor(t)
  await produceTo(topic, numbered(0, 700))
  assert.equal(await scanner.partitionCount(topic), 2)
  const ranges = await scanner.ranges(topic)
  assert.deepEqual(ranges, [{ topic, partition: 0, from: 0, to: 700 }, { topic, partition: 1, from: 0, to: 0 }])
  await produceTo(topic, numbered(700, 900))
  const wanted = numbered(0, 700).map(({ value }) => value)
  const range = ranges[0]!
  const forwards = await all(scanner.read(range, { maxBytes: 1_000 }))
  assert.deepEqual(texts(forwards), wanted)
  assert.ok(forwards.every(({ isAppendTime, topic: of, partition }) => isAppendTime && of === topic && partition === 0))
  assert.deepEqual(texts(await all(readBackwards(scanner, range))), wanted.toReversed())
  assert.deepEqual(await all(scanner.read(ranges[1]!)), [])
  assert.deepEqual(texts(await all(scanner.read({ ...range, from: 250, to: 253 }))), ['250', '251', '252'], 'from the middle of a batch')
  assert.deepEqual(await scanner.ranges(topic, { partitions: [1] }), [{ topic, partition: 1, from: 0, to: 0 }])
})

test('ranges by time hold what is not older than since and is older than until', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'scan-time', { config: { 'message.timestamp.type': 'CreateTime' } })
  const scanner = scannerFor(t)
  const now = Date.now()
  await produceTo(topic, [10, 20, 30, 40].map((ago) => ago * 1_000).toReversed().map((ago) => ({ value: String(ago), timestamp: now - ago })))
  const within = async (since?: number, before?: number): Promise<(string | undefined)[]> => {
    const [range] = await scanner.ranges(topic, { ...(since === undefined ? {} : { since }), ...(before === undefined ? {} : { until: before }) })
    return texts(await all(scanner.read(range as ScanRange)))
  }
  assert.deepEqual(await within(now - 30_000), ['30000', '20000', '10000'])
  assert.deepEqual(await within(now - 29_999, now - 10_000), ['20000'])
  assert.deepEqual(await within(undefined, now - 30_000), ['40000'])
  assert.deepEqual(await within(now + 60_000), [], 'nothing is as young')
  assert.deepEqual(await within(now - 10_000, now - 40_000), [], 'an end before its beginning')
  const [range] = await scanner.ranges(topic)
  assert.ok((await all(scanner.read(range!))).every(({ isAppendTime }) => !isAppendTime))
})

test('what transactions gave up or have not ended is not read', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'scan-transactions')
  const producer = createKafka(testConnection()).producer({ transactionalId: testTopic('transaction'), idempotent: true, maxInFlightRequests: 1 })
  t.after(() => producer.disconnect())
  await producer.connect()
  const write = async (value: string, end: 'commit' | 'abort' | 'leave'): Promise<{ abort(): Promise<void> }> => {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: [{ value }] })
    if (end !== 'leave') await transaction[end]()
    return transaction
  }
  await write('kept', 'commit')
  await write('given up', 'abort')
  await write('kept too', 'commit')
  const open = await write('open', 'leave')
  await produceTo(topic, [{ value: 'behind the open one' }])
  const scanner = scannerFor(t)
  const [range] = await scanner.ranges(topic)
  assert.deepEqual(texts(await all(scanner.read(range!))), ['kept', 'kept too'])
  await open.abort()
})

test('what is deleted meanwhile is passed over; a topic made anew is noticed', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'scan-deleted')
  const scanner = scannerFor(t)
  await produceTo(topic, numbered(0, 100))
  const [range] = await scanner.ranges(topic)
  await withAdmin(async (admin) => {
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '60' }] })
  })
  assert.deepEqual(texts(await all(scanner.read(range!))), numbered(60, 100).map(({ value }) => value))

  await withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await until(async () => {
      try {
        return await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] })
      } catch {
        return false
      }
    }, { intervalMs: 200 })
  })
  await produceTo(topic, numbered(0, 3))
  await assert.rejects(all(scanner.read({ ...range!, from: 60 })), /made anew while it was read/)
})

test('a read goes on where it was when connections are cut, and says when brokers stay away', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'scan-cut')
  for (let at = 0; at < 5; at += 1) await produceTo(topic, numbered(at * 100, at * 100 + 100))
  const [host = '', port] = kafkaForTests().brokers[0]!.split(':')
  const proxy = await startTcpProxy({ host, port: Number(port) })
  t.after(() => proxy.close())
  const scanner = scannerFor(t, { connection: testConnection({ socketFactory: proxy.socketFactory }), patienceMs: 10_000 })
  const [range] = await scanner.ranges(topic)
  const seen: ScannedRecord[] = []
  for await (const records of scanner.read(range!, { maxBytes: 500 })) {
    seen.push(...records)
    proxy.cut()
  }
  assert.deepEqual(texts(seen), numbered(0, 500).map(({ value }) => value))

  const away = scannerFor(t, { connection: testConnection({ brokers: ['127.0.0.1:1'] }), patienceMs: 300 })
  await assert.rejects(away.ranges(topic), /KafkaJSConnectionError|ECONNREFUSED|Failed to connect/)
  await assert.rejects(scanner.ranges(testTopic('missing')), /does not host this topic-partition/)
})
