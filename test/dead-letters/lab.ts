import { createHash, randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { DeadLetter, Delivery } from '../../shared/domain/delivery.ts'
import { endpointKey } from '../../shared/domain/ids.ts'
import { noPolicy } from '../../shared/domain/policy.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { openScanner } from '../../shared/kafka/scanner.ts'
import { encodeDeadLetter } from '../../shared/records/dead-letter-codec.ts'
import { deadLetterHeaders } from '../../shared/records/record-headers.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { deadLetterKey } from '../../shared/dead-letters/key.ts'
import type { ReplaySource, ReplayTarget } from '../../shared/dead-letters/replay.ts'
import type { SubscriptionNow } from '../../shared/dead-letters/verdict.ts'
import { createTestTopic, testConnection } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { sampleDeadLetter, sampleDelivery } from '../records/arbitraries.ts'

/** Of the number or text: looks like a delivery id of ours. */
export const idOf = (seed: number | string): string => `del_${createHash('sha256').update(String(seed)).digest('hex').slice(0, 32)}`

export type LetterOptions = Partial<Omit<DeadLetter, 'delivery'>> & { readonly delivery?: Partial<Delivery> }

/** A dead letter of a delivery that made eight attempts; its body is unlike any other's. */
export function letterOf(seed: number | string, { delivery = {}, ...overrides }: LetterOptions = {}): DeadLetter {
  const body = Buffer.from(`{"id":"evt_${seed}",  "bytes":"${randomBytes(8).toString('hex')}"}`)
  return {
    ...sampleDeadLetter, ...overrides,
    delivery: { ...sampleDelivery, id: idOf(seed), eventId: `evt_${seed}`, attemptsMade: 8, lastWaitMs: 5, subscriptionId: 'sub_a', body, ...delivery },
  }
}

export const keyOf = ({ delivery: { id, replay } }: DeadLetter): string => deadLetterKey({ deliveryId: id, replay })

/** As delivery writes it. */
export const recordOf = (topic: string, letter: DeadLetter) =>
  ({ topic, key: keyOf(letter), value: encodeDeadLetter(letter), headers: deadLetterHeaders(letter) })

/** Sound by its first bytes, of a schema nobody here knows. */
export const newerBytes = (): Buffer => Buffer.concat([Buffer.from([0xc3, 0x01]), randomBytes(8), Buffer.from('whatever it may say')])

export function subscriptionOf(id: string, overrides: Partial<StoredSubscription> = {}): StoredSubscription {
  const url = overrides.url ?? `http://hook.example/${id}`
  return {
    id, tenant: null, url, endpointKey: endpointKey(url), eventTypes: ['*'], state: 'active', signatureScheme: 'stripe', headers: [],
    secrets: [{ secret: 'whsec_test', createdAt: 0, expiresAt: null }], policy: noPolicy, description: null, createdAt: 0, updatedAt: 0,
    offset: 1, appendedAt: 1_000, ...overrides,
  }
}

export type Written = { readonly topic: string; readonly key: string; readonly isTombstone: boolean }

/** The topics that a replay reads and writes on the real broker, and subscriptions as the test says they are. */
export async function openDeadLetterLab(t: TestContext, { partitions = 3, deliveriesConfig = {}, dlqConfig = {} }: {
  readonly partitions?: number
  readonly deliveriesConfig?: Readonly<Record<string, string>>
  readonly dlqConfig?: Readonly<Record<string, string>>
} = {}) {
  const [dlq, deliveries] = await Promise.all([
    createTestTopic(t, 'dlq', { partitions, config: { 'cleanup.policy': 'compact,delete', ...dlqConfig } }),
    createTestTopic(t, 'deliveries', { partitions, config: deliveriesConfig }),
  ])
  const connection = testConnection()
  const brokerTime = createBrokerTime()
  const producer = await createProducer({ connection, brokerTime })
  const scanner = openScanner({ connection })
  t.after(() => Promise.all([producer.close(), scanner.close()]))
  const subscriptions = new Map<string, SubscriptionNow>([['sub_a', subscriptionOf('sub_a')]])
  const source: ReplaySource = {
    scanner, topic: dlq, gone: new Map(),
    subscriptions: {
      get: (id) => { const found = subscriptions.get(id); return found === 'newer' ? undefined : found },
      isNewer: (id) => subscriptions.get(id) === 'newer',
    },
  }
  const written: Written[] = []
  const target: ReplayTarget = {
    brokerTime, deliveriesTopic: deliveries, turn: { isHeld: async () => true },
    producer: {
      async send(record) {
        const acknowledgement = await producer.send(record)
        written.push({ topic: record.topic, key: String(record.key), isTombstone: record.value === null })
        return acknowledgement
      },
    },
  }
  return {
    connection, dlq, deliveries, producer, scanner, subscriptions, source, target,
    /** In the order in which they were acknowledged. */
    written,
    write: (letters: readonly DeadLetter[]) => Promise.all(letters.map((letter) => producer.send(recordOf(dlq, letter)))),
    clear: (key: string) => producer.send({ topic: dlq, key, value: null }),
    /** What a replay has written, in the order of partitions and offsets. */
    delivered: async () => (await readTopic(deliveries)).map(({ key, value }) => ({ key: key?.toString(), delivery: decodeDelivery(value!) })),
  }
}
