import type { BrokerTime } from './broker-time.ts'
import { isKafkaTrouble, type KafkaConnection } from './client.ts'
import type { CompressionName } from './compression.ts'
import { createSpreader } from './partitioner.ts'
import { headOf, placeBatch, retryDelayMs, type Acknowledgement, type Group, type Pending } from './produce-batch.ts'
import { ProduceError } from './produce-error.ts'
import { createProduceGateway, type PartitionAnswer } from './produce-gateway.ts'
import { sizeOfRecord, toMessage, type ProducedRecord } from './produced-record.ts'

export type { Acknowledgement }

export type ProducerOptions = {
  readonly connection: KafkaConnection
  /** Fed with the append time of every acknowledged batch. */
  readonly brokerTime: BrokerTime
  /** Where `hasRoom()` turns false: bytes of records not yet acknowledged. */
  readonly maxQueuedBytes?: number
  /** A larger record is refused before it is sent; keep it below the brokers' `max.message.bytes`. */
  readonly maxRecordBytes?: number
  readonly compression?: CompressionName
  /** How long a topic may be unknown to the brokers before its records are refused, ms. */
  readonly unknownTopicGraceMs?: number
}

export type ProducerCounts = {
  readonly acknowledgedRecords: number
  readonly requests: number
  /** Records sent again after a failure: each may have been written before. */
  readonly retriedRecords: number
  readonly refusedRecords: number
}

/**
 * Writes records in batches: at once when idle, else the next batch leaves when a request returns. Each promise stands for its record
 * alone. While brokers are away everything waits and is tried again; order between batches is not kept, and a record whose answer was
 * lost is written twice.
 */
export type Producer = {
  /** Resolves when all in-sync replicas have it; rejects with a ProduceError when this record can never be written. */
  send(record: ProducedRecord): Promise<Acknowledgement>
  /** False while `maxQueuedBytes` or more wait. `send` still takes records then: callers wait for `room()` before they begin new work. */
  hasRoom(): boolean
  room(): Promise<void>
  queuedBytes(): number
  queuedRecords(): number
  counts(): ProducerCounts
  /** Takes nothing new, waits up to `deadlineMs` for what is queued, then rejects the rest as `closed`. May be called again. */
  close(deadlineMs?: number): Promise<void>
}

const maxInFlight = 2
const defaultCloseDeadlineMs = 10_000
const maxInternalFailures = 5

/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD: one record is to blame, the answer does not say which. */
const blamesOneRecord = new Set([10, 18, 32, 87])
const tooLargeCodes = new Set([10, 18])

/** Resolves after one attempt to connect, whether it succeeded or not: brokers that are away are waited for by the records. */
export async function createProducer(options: ProducerOptions): Promise<Producer> {
  const { connection, brokerTime, maxQueuedBytes = 32 * 1024 * 1024, maxRecordBytes = 1_000_000, unknownTopicGraceMs = 5_000 } = options
  const { log } = connection
  const gateway = createProduceGateway(connection, options.compression ?? 'none')
  const spread = createSpreader()
  const unsettled = new Set<Pending>()
  const timers = new Set<NodeJS.Timeout>()
  const counts = { acknowledgedRecords: 0, requests: 0, retriedRecords: 0, refusedRecords: 0 }
  let queue: readonly Pending[] = []
  /** What this turn of the event loop has sent: goes out together. */
  let arriving: Pending[] = []
  let queuedBytes = 0
  let inFlight = 0
  /** Requests in a row without an answer: while above 0 a single one is sent at a time, after a rest. */
  let failuresInARow = 0
  let isResting = false
  let roomWaiters: (() => void)[] = []
  let idleWaiters: (() => void)[] = []
  let closing: Promise<void> | null = null
  let isClosed = false

  const settle = (pending: Pending, finish: () => void): void => {
    if (pending.isSettled) return
    pending.isSettled = true
    unsettled.delete(pending)
    queuedBytes -= pending.bytes
    finish()
    if (queuedBytes < maxQueuedBytes) roomWaiters = release(roomWaiters)
    if (unsettled.size === 0) idleWaiters = release(idleWaiters)
  }

  const refuse = (pending: Pending, error: ProduceError): void => settle(pending, () => {
    counts.refusedRecords++
    pending.reject(error)
  })

  const later = (delayMs: number, act: () => void): void => {
    if (isClosed) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, delayMs)
    timers.add(timer)
  }

  const retryLater = (pendings: readonly Pending[]): void => {
    const waiting = pendings.filter((pending) => !pending.isSettled)
    if (waiting.length === 0) return
    counts.retriedRecords += waiting.length
    for (const pending of waiting) pending.failures++
    later(retryDelayMs(Math.min(...waiting.map(({ failures }) => failures))), () => {
      queue = [...waiting, ...queue]
      pump()
    })
  }

  /** No answer for a whole request: it passes when the brokers are back, unless it is our own bug again and again. */
  const onRequestFailed = (error: unknown, pendings: readonly Pending[]): void => {
    gateway.invalidate()
    failuresInARow++
    const isTheirs = isKafkaTrouble(error)
    log(!isTheirs ? 'error' : failuresInARow === 1 ? 'warn' : 'debug', 'a produce request failed; its records are kept and sent again', {
      records: pendings.length, failuresInARow, error: String(error),
    })
    for (const pending of isTheirs ? [] : pendings) {
      if (++pending.internalFailures < maxInternalFailures) continue
      refuse(pending, new ProduceError('internal', `a record for topic ${pending.record.topic} cannot be sent: ${String(error)}`, { cause: error }))
    }
    if (!isResting) {
      isResting = true
      later(retryDelayMs(failuresInARow), () => {
        isResting = false
        pump()
      })
    }
    retryLater(pendings)
  }

  const onUnplaced = (pending: Pending, errorType: string): void => {
    const { topic, partition } = pending.record
    const now = performance.now()
    const isUnknown = errorType === 'UNKNOWN_TOPIC_OR_PARTITION'
    if (isUnknown) pending.unknownSince ??= now
    if (errorType === 'LEADER_NOT_AVAILABLE' || (isUnknown && now - (pending.unknownSince ?? now) < unknownTopicGraceMs)) {
      gateway.invalidate()
      retryLater([pending])
    } else if (isUnknown) {
      const what = partition === undefined ? `topic ${topic}` : `partition ${partition} of topic ${topic}`
      refuse(pending, new ProduceError('unknown_topic', `${what} does not exist: create what is missing with "posthouse topics provision --yes"`))
    } else {
      refuse(pending, new ProduceError('refused', `the brokers refuse to write to topic ${topic}: ${errorType}`))
    }
  }

  const onAnswer = async (leader: number, group: Group, answer: PartitionAnswer): Promise<void> => {
    const { topic, partition, pendings } = group
    const { error, baseOffset, appendedAt } = answer
    if (!error) {
      counts.acknowledgedRecords += pendings.length
      for (const [index, pending] of pendings.entries()) {
        settle(pending, () => pending.resolve({ topic, partition, offset: baseOffset + index, appendedAt }))
      }
    } else if (blamesOneRecord.has(error.code) && pendings.length > 1) {
      const middle = pendings.length >> 1
      await produce(leader, [{ ...group, pendings: pendings.slice(0, middle) }])
      await produce(leader, [{ ...group, pendings: pendings.slice(middle) }])
    } else if (error.isRetriable && !blamesOneRecord.has(error.code)) {
      gateway.invalidate()
      log('debug', 'a partition takes no records for now; they are sent again', { topic, partition, error: error.type, records: pendings.length })
      retryLater(pendings)
    } else {
      const isTooLarge = tooLargeCodes.has(error.code)
      const advice = isTooLarge ? '; raise max.message.bytes of the topic, or send less' : ''
      for (const pending of pendings) {
        refuse(pending, new ProduceError(isTooLarge ? 'too_large' : 'refused',
          `topic ${topic} partition ${partition} refuses a record of ${pending.bytes} bytes: ${error.type} (code ${error.code})${advice}`))
      }
    }
  }

  /** Never rejects: afterwards every record of the groups is settled or waits for its next try. */
  const produce = async (leader: number, groups: readonly Group[]): Promise<void> => {
    const sentAt = brokerTime.localNow()
    let answers: readonly PartitionAnswer[]
    try {
      answers = await gateway.produce(leader, groups.map(({ topic, partition, pendings }) => ({
        topic, partition, messages: pendings.map(({ record }) => toMessage(record)),
      })))
    } catch (error) {
      return onRequestFailed(error, groups.flatMap(({ pendings }) => pendings))
    }
    const acknowledgedAt = brokerTime.localNow()
    failuresInARow = 0
    counts.requests++
    for (const { appendedAt } of answers) if (appendedAt !== null) brokerTime.sample(sentAt, acknowledgedAt, appendedAt)
    for (const group of groups) {
      const answer = answers.find(({ topic, partition }) => topic === group.topic && partition === group.partition)
      if (answer) await onAnswer(leader, group, answer)
      else retryLater(group.pendings)
    }
  }

  const dispatch = async (batch: readonly Pending[]): Promise<void> => {
    inFlight++
    try {
      const views = await gateway.topicViews(new Set(batch.map(({ record }) => record.topic)))
      const { byLeader, unplaced } = placeBatch(batch, views, spread)
      for (const { pending, errorType } of unplaced) onUnplaced(pending, errorType)
      await Promise.all([...byLeader].map(([leader, groups]) => produce(leader, groups)))
    } catch (error) {
      onRequestFailed(error, batch)
    } finally {
      inFlight--
      pump()
    }
  }

  const mayDispatch = (): boolean => queue.length > 0 && !isResting && inFlight < (failuresInARow > 0 ? 1 : maxInFlight)

  const pump = (): void => {
    while (mayDispatch()) {
      const batch = headOf(queue)
      queue = queue.slice(batch.length)
      void dispatch(batch.filter((pending) => !pending.isSettled))
    }
  }

  const send = (record: ProducedRecord): Promise<Acknowledgement> => new Promise((resolve, reject) => {
    const bytes = sizeOfRecord(record)
    if (closing) return reject(new ProduceError('closed', `the producer is closed: the record for topic ${record.topic} was not sent`))
    if (bytes > maxRecordBytes) {
      counts.refusedRecords++
      return reject(new ProduceError('too_large', `a record for topic ${record.topic} has ${bytes} bytes, the limit is ${maxRecordBytes}`))
    }
    const pending: Pending = { record, bytes, failures: 0, internalFailures: 0, unknownSince: null, isSettled: false, resolve, reject }
    unsettled.add(pending)
    queuedBytes += bytes
    if (arriving.push(pending) > 1) return
    setImmediate(() => {
      queue = [...queue, ...arriving]
      arriving = []
      pump()
    })
  })

  const shutDown = async (deadlineMs: number): Promise<void> => {
    if (unsettled.size > 0) {
      await new Promise<void>((resolve) => {
        idleWaiters.push(resolve)
        later(deadlineMs, resolve)
      })
    }
    for (const pending of unsettled) {
      settle(pending, () => pending.reject(new ProduceError('closed',
        `the producer was closed before Kafka acknowledged a record for topic ${pending.record.topic}: it may or may not be written`)))
    }
    isClosed = true
    for (const timer of timers) clearTimeout(timer)
    queue = []
    await gateway.close()
  }

  await gateway.connect().catch((error: unknown) => {
    log('warn', 'no broker could be reached yet; records wait until one can', { brokers: connection.brokers, error: String(error) })
  })

  return {
    send,
    hasRoom: () => queuedBytes < maxQueuedBytes,
    room: () => queuedBytes < maxQueuedBytes ? Promise.resolve() : new Promise((resolve) => roomWaiters.push(resolve)),
    queuedBytes: () => queuedBytes,
    queuedRecords: () => unsettled.size,
    counts: () => ({ ...counts }),
    close: (deadlineMs = defaultCloseDeadlineMs) => (closing ??= shutDown(deadlineMs)),
  }
}

/** Calls all waiters and returns the empty list that takes their place. */
function release(waiters: readonly (() => void)[]): (() => void)[] {
  for (const waiter of waiters) waiter()
  return []
}
