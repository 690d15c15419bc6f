import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { compressionNames, compressionType, registerCodecs, type CompressionName } from '../../shared/kafka/compression.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { createTestTopic, kafkaForTests, testConnection } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'

const { skip } = kafkaForTests()

/** Large enough for several blocks of each codec, half of it hard to compress. */
const values = Array.from({ length: 400 }, (_, index) => Buffer.from(`${'posthouse '.repeat(index % 200)}${Math.sin(index)}`))

for (const compression of compressionNames) {
  test(`${compression}: what is written compressed is read back, by way of the broker`, { skip }, async (t) => {
    const unpacked = countUnpacked(t, compression)
    const topic = await createTestTopic(t, `codec-${compression}`)
    const producer = await createProducer({ connection: testConnection(), brokerTime: createBrokerTime(), compression })
    t.after(() => producer.close(0))
    await Promise.all(values.map((value) => producer.send({ topic, key: null, value })))
    assert.deepEqual((await readTopic(topic)).map(({ value }) => value?.toString()), values.map(String))
    assert.equal(unpacked() > 0, compression !== 'none')
  })

  // The broker packs anew, with its own library: what a Java or librdkafka producer would write.
  test(`${compression}: what the broker itself has compressed is read`, { skip }, async (t) => {
    const unpacked = countUnpacked(t, compression)
    const topic = await createTestTopic(t, `broker-${compression}`, { config: { 'compression.type': compression === 'none' ? 'uncompressed' : compression } })
    const producer = await createProducer({ connection: testConnection(), brokerTime: createBrokerTime() })
    t.after(() => producer.close(0))
    await Promise.all(values.map((value) => producer.send({ topic, key: null, value })))
    assert.deepEqual((await readTopic(topic)).map(({ value }) => value?.toString()), values.map(String))
    assert.equal(unpacked() > 0, compression !== 'none')
  })
}

type Codec = { decompress(packed: Buffer): Promise<Buffer> }

/** Counts how often kafkajs unpacks with a codec, so that a batch that was never compressed cannot pass. */
function countUnpacked(t: TestContext, compression: CompressionName): () => number {
  registerCodecs()
  const codecs = kafkajs.CompressionCodecs as Record<number, (() => Codec) | undefined>
  const type = compressionType(compression)
  const original = codecs[type]
  if (!original) return () => 0
  let count = 0
  codecs[type] = () => {
    const codec = original()
    return { ...codec, decompress: (packed) => { count++; return codec.decompress(packed) } }
  }
  t.after(() => { codecs[type] = original })
  return () => count
}
