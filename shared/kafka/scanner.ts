import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KafkaMessage } from 'kafkajs'
import { isRetriableKafkaError, kafkaErrorType, type KafkaConnection } from './client.ts'
import { call, createCluster, createErrorFromCode, type Broker } from './cluster.ts'
import { toConsumedRecord, type ConsumedRecord } from './consumed-record.ts'
import { createTopicViews } from './topic-views.ts'

/** Part of a partition: offsets from `from` up to, not including, `to`. */
export type ScanRange = { readonly topic: string; readonly partition: number; readonly from: number; readonly to: number }

/** `isAppendTime`: the broker stamped it when it took it, so within the partition no later record is older. */
export type ScannedRecord = ConsumedRecord & { readonly isAppendTime: boolean }

/**
 * Reads what is in topics now, up to an end that is fixed beforehand; joins no group and commits nothing, so it may take as long as
 * whoever reads wants. Of transactions only what is committed. Several reads may run at once.
 */
export type Scanner = {
  /** Partitions of a topic. @throws when it does not exist */
  partitionCount(topic: string): Promise<number>
  /**
   * What is in a topic now, by partition; empty partitions are in it too. `since` and `until` are epoch ms: from the first record that is
   * not older than `since`, up to before the first that is not older than `until`. In a topic that keeps the producers' times there may
   * be younger records before that end and older ones after it.
   */
  ranges(topic: string, bounds?: { readonly since?: number; readonly until?: number; readonly partitions?: readonly number[] }): Promise<ScanRange[]>
  /**
   * The records of a range in order of their offsets, some at a time, each fetched when the one before was taken: about `maxBytes` are in
   * memory. What is deleted meanwhile is passed over. @throws when no broker answers for `patienceMs`, or the topic is made anew meanwhile
   */
  read(range: ScanRange, options?: { readonly maxBytes?: number }): AsyncGenerator<readonly ScannedRecord[], void, void>
  close(): Promise<void>
}

export type ScannerOptions = {
  readonly connection: KafkaConnection
  /** How long brokers may be away or undecided before a read gives up, ms. */
  readonly patienceMs?: number
}

/** As ListOffsets has it. */
const earliest = -2
const latest = -1

const offsetOutOfRange = 1
const readCommitted = 1
/** Small: what V8 lets pile up grows with what is alive at once, and larger fetches were no faster. */
const defaultMaxBytes = 128 * 1024
const fetchWaitMs = 500
/** A topic that was just made is not known to every broker at once. */
const unknownTopicPatienceMs = 3_000
const longestPauseMs = 2_000

type ListOffsetsAnswer = { readonly responses: readonly { readonly partitions: readonly { readonly errorCode: number; readonly offset: string }[] }[] }
type FetchedPartition = {
  readonly errorCode: number
  readonly highWatermark: string
  /** Up to where no transaction is open; absent or -1 where the broker knows none. */
  readonly lastStableOffset?: string
  readonly messages: readonly RawMessage[]
}
type FetchAnswer = { readonly errorCode?: number; readonly responses: readonly { readonly partitions: readonly FetchedPartition[] }[] }
type RawMessage = KafkaMessage & { readonly batchContext?: { readonly timestampType?: number } }

const require = createRequire(import.meta.url)
/** Leaves out control records and what belongs to transactions that were given up. */
const Batch = require('kafkajs/src/consumer/batch') as new (topic: string, fetchedOffset: string, fetched: FetchedPartition) => { readonly messages: readonly RawMessage[] }

/** Connects when it first reads. */
export function openScanner({ connection, patienceMs = 30_000 }: ScannerOptions): Scanner {
  const cluster = createCluster(connection)
  const views = createTopicViews(cluster)
  const closed = new AbortController()
  let connecting: Promise<void> | null = null

  async function connected(): Promise<void> {
    connecting ??= cluster.connect()
    try {
      await connecting
    } catch (error) {
      connecting = null
      throw error
    }
  }

  async function leadersOf(topic: string): Promise<readonly number[]> {
    await connected()
    const view = (await views.read(new Set([topic]))).get(topic)
    if (view?.leaders) return view.leaders
    throw createErrorFromCode(view?.errorType === 'UNKNOWN_TOPIC_OR_PARTITION' || !view ? unknownTopicCode : leaderNotAvailableCode)
  }

  /** Does it again while leaders move or brokers are away. */
  async function patiently<Value>(work: () => Promise<Value>): Promise<Value> {
    const begunAt = performance.now()
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        return await work()
      } catch (error) {
        const limitMs = kafkaErrorType(error) === 'UNKNOWN_TOPIC_OR_PARTITION' ? Math.min(unknownTopicPatienceMs, patienceMs) : patienceMs
        if (closed.signal.aborted || !isRetriableKafkaError(error) || performance.now() - begunAt > limitMs) throw error
        connection.log('debug', 'a read is tried again', { error: String(error) })
        views.invalidate()
        await sleep(pauseMs, undefined, { signal: closed.signal })
      }
    }
  }

  /** One request to the leader of a partition; the answer's own error is thrown, but that an offset is not there. */
  async function askLeader<Answer extends { readonly errorCode: number }>(
    topic: string, partition: number, ask: (broker: Broker) => Promise<Answer | undefined>,
  ): Promise<Answer> {
    return patiently(async () => {
      const leader = (await leadersOf(topic))[partition]
      if (leader === undefined) throw createErrorFromCode(unknownTopicCode)
      if (leader < 0) throw createErrorFromCode(leaderNotAvailableCode)
      const answer = await ask(await cluster.brokerPool.findBroker({ nodeId: String(leader) }))
      if (!answer) throw new Error(`the brokers' answer has nothing of ${topic} partition ${partition}`)
      if (answer.errorCode !== 0 && answer.errorCode !== offsetOutOfRange) throw createErrorFromCode(answer.errorCode)
      return answer
    })
  }

  /** The first offset that is not older than a time (epoch ms, or `earliest`, `latest`); -1 where there is none. */
  async function offsetAt(topic: string, partition: number, timestamp: number): Promise<number> {
    const { offset } = await askLeader(topic, partition, async (broker) => (await call<ListOffsetsAnswer>(broker, 'ListOffsets', {
      replicaId: -1, isolationLevel: readCommitted, topics: [{ topic, partitions: [{ partition, timestamp }] }],
    })).responses[0]?.partitions[0])
    return Number(offset)
  }

  async function rangeOf(topic: string, partition: number, since: number | undefined, until: number | undefined): Promise<ScanRange> {
    const [low, high, first, end] = await Promise.all([
      offsetAt(topic, partition, earliest), offsetAt(topic, partition, latest),
      since === undefined ? null : offsetAt(topic, partition, Math.max(0, Math.floor(since))),
      until === undefined ? null : offsetAt(topic, partition, Math.max(0, Math.floor(until))),
    ])
    const to = end === null || end < 0 ? high : Math.min(end, high)
    const from = first === null ? low : first < 0 ? high : first
    return { topic, partition, from: Math.min(from, to), to }
  }

  const fetch = ({ topic, partition, to }: ScanRange, offset: number, maxBytes: number): Promise<FetchedPartition> =>
    askLeader(topic, partition, async (broker) => {
      const answer = await call<FetchAnswer>(broker, 'Fetch', {
        replicaId: -1, isolationLevel: readCommitted, maxWaitTime: fetchWaitMs, minBytes: 1, maxBytes, rackId: '',
        topics: [{ topic, partitions: [{ partition, fetchOffset: String(offset), maxBytes }] }],
      })
      if (answer.errorCode) throw createErrorFromCode(answer.errorCode)
      const fetched = answer.responses[0]?.partitions[0]
      // A leader that is new may not know yet how far its log is safe, and gives nothing of what its predecessor already gave.
      if (fetched?.errorCode === 0 && fetched.messages.length === 0 && readableEnd(fetched) < to) throw createErrorFromCode(offsetNotAvailableCode)
      return fetched
    })

  async function* read(range: ScanRange, { maxBytes = defaultMaxBytes } = {}): AsyncGenerator<readonly ScannedRecord[], void, void> {
    const { topic, partition, to } = range
    for (let position = range.from; position < to;) {
      const fetched = await fetch(range, position, maxBytes)
      if (fetched.errorCode === offsetOutOfRange) {
        const low = await offsetAt(topic, partition, earliest)
        if (low <= position) throw new Error(`${topic} partition ${partition} was made anew while it was read: start again`)
        position = low
        continue
      }
      const { messages } = fetched
      const last = messages.at(-1)
      // Alone in its request, and below the end of what was there: compaction has left nothing behind this.
      if (!last) return
      const records = new Batch(topic, String(position), fetched).messages
        .filter(({ offset }) => Number(offset) < to)
        .map((message) => ({ ...toConsumedRecord(topic, partition, message), isAppendTime: message.batchContext?.timestampType === 1 }))
      // A batch that ends before where it was asked for would be given again for ever.
      position = Math.max(position + 1, Number(last.offset) + 1)
      if (records.length > 0) yield records
    }
  }

  return {
    partitionCount: async (topic) => (await patiently(() => leadersOf(topic))).length,
    async ranges(topic, { since, until, partitions } = {}) {
      const wanted = partitions ?? [...(await patiently(() => leadersOf(topic))).keys()]
      return Promise.all(wanted.map((partition) => rangeOf(topic, partition, since, until)))
    },
    read,
    async close() {
      closed.abort()
      await cluster.disconnect()
    },
  }
}

const unknownTopicCode = 3
const leaderNotAvailableCode = 5
const offsetNotAvailableCode = 78

function readableEnd({ highWatermark, lastStableOffset = '-1' }: FetchedPartition): number {
  return Number(lastStableOffset) < 0 ? Number(highWatermark) : Math.min(Number(highWatermark), Number(lastStableOffset))
}

/** How many offsets are read at once from the end: few first, as who looks at what came last seldom needs more. */
const firstChunk = 250
const largestChunk = 1_000

/** The records of a range from the last to the first, some at a time; at most 1,000 are in memory. */
export async function* readBackwards(scanner: Pick<Scanner, 'read'>, range: ScanRange): AsyncGenerator<readonly ScannedRecord[], void, void> {
  let { to } = range
  for (let size = firstChunk; to > range.from; size = Math.min(size * 2, largestChunk)) {
    const from = Math.max(range.from, to - size)
    const chunk: ScannedRecord[] = []
    for await (const records of scanner.read({ ...range, from, to })) chunk.push(...records)
    if (chunk.length > 0) yield chunk.toReversed()
    to = from
  }
}
