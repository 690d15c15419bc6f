import { createRequire } from 'node:module'
import { createKafka, type KafkaConnection } from './client.ts'

/** What kafkajs's clients are built on and its types do not show. */
export type Cluster = {
  targetTopics: Set<string>
  readonly brokerPool: {
    readonly brokers: Readonly<Record<string, Broker>>
    findConnectedBroker(): Promise<Broker>
    findBroker(node: { nodeId: string }): Promise<Broker>
  }
  connect(): Promise<void>
  refreshMetadata(): Promise<void>
  disconnect(): Promise<void>
}

export type Broker = {
  readonly connectionPool: { readonly host: string; readonly port: number; send(request: object): Promise<unknown> }
  lookupRequest(apiKey: number, versions: object): (fields: object) => { request: object; response: { decode: Decode }; requestTimeout?: number }
  disconnect(): Promise<void>
}

type Decode = (raw: Buffer) => Promise<unknown>

/** How old metadata may be before kafkajs reads it again, ms. */
export const metadataMaxAgeMs = 30_000

const require = createRequire(import.meta.url)
const { requests } = require('kafkajs/src/protocol/requests') as { readonly requests: Readonly<Record<string, object>> }
const apiKeys = require('kafkajs/src/protocol/requests/apiKeys') as Readonly<Record<string, number>>

/** The error that a code of the protocol stands for; `type` is its name there. */
export const { createErrorFromCode } = require('kafkajs/src/protocol/error') as {
  readonly createErrorFromCode: (code: number) => Error & { type: string; retriable: boolean }
}

/** A cluster of its own, which only kafkajs's producer, consumer and admin get; without any retry of its own. Connects to nothing yet. */
export function createCluster(connection: KafkaConnection): Cluster {
  const kafka = createKafka(connection, { retries: 0 })
  const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster')
  if (!symbol) throw new Error('kafkajs has no createCluster: install kafkajs 2.2.4 exactly, shared/kafka is written for it')
  const create = (kafka as unknown as Record<symbol, (options: object) => Cluster>)[symbol]!
  return create({ metadataMaxAge: metadataMaxAgeMs, allowAutoTopicCreation: false })
}

const brokenConnections = new Set(['KafkaJSConnectionClosedError', 'KafkaJSRequestTimeoutError'])

/** Sends one request in the newest version both sides know and returns it decoded, errors within it included. */
export async function call<Answer>(broker: Broker, api: 'Metadata' | 'Produce' | 'Fetch' | 'ListOffsets', fields: object): Promise<Answer> {
  const { request, response, ...rest } = broker.lookupRequest(apiKeys[api]!, requests[api]!)(fields)
  try {
    return await broker.connectionPool.send({ ...rest, request, response: { decode: response.decode, parse: async (data: unknown) => data } }) as Answer
  } catch (error) {
    // Closed, or silent for the request's whole time limit: the next try gets a new connection.
    if (error instanceof Error && brokenConnections.has(error.name)) await broker.disconnect()
    throw error
  }
}
