import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { Admin, IHeaders } from 'kafkajs'
import { createKafka, kafkaErrorType, type KafkaConnection } from '../../shared/kafka/client.ts'
import { until } from './until.ts'

/** Names the broker that the run started, or one that was there already; `npm test` sets it. */
const brokersVariable = 'POSTHOUSE_TEST_KAFKA'

/** A test, or `node:test` itself (`{ after }`) for what a whole file shares. */
export type Cleanup = Pick<TestContext, 'after'>

/**
 * Cleans up after every hook that the test registers itself. Hooks run in the order they were registered, and a topic is made before
 * the consumers that read it: without this it would be deleted under them. (A hook added by a running hook comes last.)
 */
function afterEverything(t: Cleanup, work: () => Promise<unknown>): void {
  t.after(() => t.after(work))
}

export type KafkaForTests = {
  /** Empty when there is no Kafka: then every test that needs one is skipped. */
  readonly brokers: readonly string[]
  /** Goes into the options of a test: `test('...', { skip: kafkaForTests().skip }, ...)`. */
  readonly skip: string | false
}

/** The brokers of this run, or why the tests that need them are skipped. */
export function kafkaForTests(): KafkaForTests {
  const brokers = (process.env[brokersVariable] ?? '').split(',').map((broker) => broker.trim()).filter(Boolean)
  const skip = brokers.length > 0 ? false : `needs Kafka: run it by npm test, or set ${brokersVariable}=host:port`
  return { brokers, skip }
}

/** How to reach this run's brokers. Silent unless the test gives a `log`. */
export function testConnection(overrides: Partial<KafkaConnection> = {}): KafkaConnection {
  const { brokers, skip } = kafkaForTests()
  if (skip && !overrides.brokers) throw new Error(skip)
  return { brokers, clientId: 'posthouse-test', ssl: false, sasl: null, log: () => undefined, ...overrides }
}

/** A name no other test has, for a topic or a group: `test.<name>.<random>`. */
export function testTopic(name: string): string {
  return `test.${name}.${randomBytes(6).toString('hex')}`
}

/** The prefix that keeps one test's whole set of topics from every other's, with its dot. */
export function testTopicPrefix(name: string): string {
  return `${testTopic(name)}.`
}

/** Runs `work` with a connected admin client that is closed afterwards. */
export async function withAdmin<Result>(work: (admin: Admin) => Promise<Result>, connection = testConnection()): Promise<Result> {
  const admin = createKafka(connection).admin({ retry: { retries: 10 } })
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

export type TestTopicOptions = { readonly partitions?: number; readonly config?: Readonly<Record<string, string>> }

/** Makes a topic of a random name (1 partition, LogAppendTime, unless told otherwise), deleted when the test ends. */
export async function createTestTopic(t: Cleanup, name: string, { partitions = 1, config = {} }: TestTopicOptions = {}): Promise<string> {
  const topic = testTopic(name)
  const configEntries = Object.entries({ 'message.timestamp.type': 'LogAppendTime', ...config })
    .map(([name, value]) => ({ name, value }))
  deleteTopicsAfter(t, topic)
  await withAdmin((admin) => admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }] }))
  return topic
}

/** Deletes the topics whose names begin so, when the test ends; for topics that the code under test makes. */
export function deleteTopicsAfter(t: Cleanup, prefix: string): void {
  afterEverything(t, () => withAdmin(async (admin) => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
    if (topics.length > 0) await admin.deleteTopics({ topics })
  }))
}

/** Deletes a consumer group when the test ends; waits for members that were killed to be forgotten (session timeout). */
export function deleteGroupAfter(t: Cleanup, groupId: string): void {
  afterEverything(t, () => withAdmin((admin) => until(() => admin.deleteGroups([groupId]).then(() => true, isGroupGone), {
    deadlineMs: 15_000, intervalMs: 200, message: `consumer group ${groupId} to have no members left, so that it can be deleted`,
  })))
}

/** kafkajs packs the reason per group into the error; a group that is not there needs no deleting. */
function isGroupGone(error: unknown): boolean {
  const inner = (error as { groups?: { error?: unknown }[] }).groups?.[0]?.error ?? error
  return kafkaErrorType(inner) === 'GROUP_ID_NOT_FOUND'
}

export type ProducedMessage = {
  readonly key?: string | Buffer | null
  readonly value: string | Buffer | null
  readonly headers?: IHeaders
  readonly partition?: number
  /** Epoch ms; the broker replaces it in a topic with LogAppendTime. */
  readonly timestamp?: number
}

/** Writes messages in one request and resolves when every replica has them. */
export async function produceTo(topic: string, messages: readonly ProducedMessage[], connection = testConnection()): Promise<void> {
  const producer = createKafka(connection).producer({ allowAutoTopicCreation: false })
  await producer.connect()
  try {
    await producer.send({
      topic,
      acks: -1,
      messages: messages.map(({ timestamp, key = null, ...message }) =>
        ({ ...message, key, ...(timestamp === undefined ? {} : { timestamp: String(timestamp) }) })),
    })
  } finally {
    await producer.disconnect()
  }
}
