import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import kafkajs, { type ISocketFactory, type LogEntry, type logLevel } from 'kafkajs'
import { createAdmin, createKafka, isKafkaTrouble, isRetriableKafkaError, kafkaErrorType, levelOf } from '../../shared/kafka/client.ts'
import { closedPort } from '../support/receivers.ts'
import { createTestTopic, kafkaForTests, testConnection, testTopic } from '../support/kafka.ts'

/** kafkajs's types know less of its constructors than they take. */
type ErrorClass = new (what: string | Error, options?: object) => Error
const { KafkaJSConnectionError, KafkaJSNonRetriableError, KafkaJSProtocolError } = kafkajs as unknown as {
  KafkaJSConnectionError: ErrorClass, KafkaJSNonRetriableError: ErrorClass, KafkaJSProtocolError: ErrorClass
}
const { skip } = kafkaForTests()

const entry = (level: logLevel, namespace: string, fields: object = {}): LogEntry =>
  ({ level, namespace, label: '', log: { timestamp: '', message: 'x', ...fields } })

test('an error is retriable by its cause, whatever class kafkajs put around it', () => {
  const connection = new KafkaJSConnectionError('refused', { broker: 'b:1', code: 'ECONNREFUSED' })
  assert.equal(isRetriableKafkaError(new KafkaJSNonRetriableError('gave up', { cause: connection })), true)
  const notLeader = new KafkaJSProtocolError(Object.assign(new Error('moved'), { type: 'NOT_LEADER_FOR_PARTITION', retriable: true, code: 6 }))
  assert.equal(isRetriableKafkaError(new KafkaJSNonRetriableError(notLeader, { cause: notLeader })), true)
  const tooLarge = new KafkaJSProtocolError(Object.assign(new Error('large'), { type: 'MESSAGE_TOO_LARGE', retriable: false, code: 10 }))
  assert.equal(isRetriableKafkaError(tooLarge), false)
  assert.equal(kafkaErrorType(new KafkaJSNonRetriableError('x', { cause: tooLarge })), 'MESSAGE_TOO_LARGE')
  assert.equal(isRetriableKafkaError(Object.assign(new Error('reset'), { code: 'ECONNRESET' })), true)
})

test('a bug of ours is neither retriable nor Kafka\'s, and a cause that is its own ends the search', () => {
  const looped = new Error('loop')
  looped.cause = looped
  for (const error of [new TypeError('bug'), looped, 'text', null, undefined]) {
    assert.equal(isRetriableKafkaError(error), false)
    assert.equal(isKafkaTrouble(error), false)
    assert.equal(kafkaErrorType(error), null)
  }
})

test('of kafkajs\'s reconnection noise the first line and one a minute are warnings', () => {
  const levels = Array.from({ length: 14 }, (_, retryCount) => levelOf(entry(kafkajs.logLevel.ERROR, 'BrokerPool', { retryCount })))
  assert.deepEqual(levels.flatMap((level, index) => (level === 'warn' ? [index] : [])), [0, 12])
  assert.ok(levels.every((level) => level === 'warn' || level === 'debug'))
  assert.equal(levelOf(entry(kafkajs.logLevel.ERROR, 'Connection')), 'debug')
  assert.equal(levelOf(entry(kafkajs.logLevel.ERROR, 'Consumer')), 'error')
  assert.equal(levelOf(entry(kafkajs.logLevel.INFO, 'ConsumerGroup')), 'debug')
})

test('an admin client with few retries fails clearly when no broker listens, and says why in the log', async () => {
  const lines: string[] = []
  const connection = testConnection({ brokers: [`127.0.0.1:${await closedPort()}`], log: (level, message) => lines.push(`${level} ${message}`) })
  await assert.rejects(createAdmin(connection, { retries: 1 }), isRetriableKafkaError)
  assert.ok(lines.some((line) => line.startsWith('warn kafkajs: Failed to connect to seed broker')))
})

test('an admin client closes twice without harm', { skip }, async () => {
  const admin = await createAdmin(testConnection())
  assert.equal((await admin.listTopics()).includes(testTopic('none')), false)
  await Promise.all([admin.close(), admin.close()])
})

test('a consumer never makes a topic, whatever the brokers allow', { skip }, async (t) => {
  const metadataApi = 3
  const flags: number[] = []
  const socketFactory: ISocketFactory = ({ host, port, onConnect }) => {
    const socket = net.connect({ host, port }, onConnect)
    const write = socket.write.bind(socket)
    // One request a write: size, api key, version, ...; in a metadata request the flag is the last byte.
    socket.write = ((request: Buffer, encoding: BufferEncoding) => {
      if (request.readInt16BE(4) === metadataApi) flags.push(request.readUInt8(request.length - 1))
      return write(request, encoding)
    }) as typeof socket.write
    return socket
  }
  const consumer = createKafka(testConnection({ socketFactory })).consumer({ groupId: testTopic('no-topic') })
  t.after(() => consumer.disconnect())
  await consumer.connect()
  const topic = await createTestTopic(t, 'no-topic')
  await consumer.subscribe({ topic })
  assert.ok(flags.length > 0)
  assert.deepEqual(flags.filter((flag) => flag !== 0), [])
})
