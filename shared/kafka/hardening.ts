import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** What is patched, by file inside kafkajs, with the SHA-256 of the source each patch was written against (kafkajs 2.2.4). */
const patchedFiles = {
  'kafkajs/src/protocol/recordBatch/v0/decoder.js': '38cae7fc865f9bc51941353e1f6e9419227a8799ba4efb437199393a4eb94819',
  'kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js': 'd9fede59bebf84ee15169d0ecc54df594a11722b6ba8d5db535ed1d8548d4fcc',
  'kafkajs/src/network/requestQueue/index.js': 'b55986089c14f8f7bfc377922e2e65b3e4c1e7c7af2752d3b10a75dfe9e9260c',
} as const

/** Read by the patches, not changed; loaded too early they would keep the unpatched function. */
const mustLoadLater = [4, 5, 7, 8, 11].map((version) => `kafkajs/src/protocol/requests/fetch/v${version}/response.js`)

let isHardened = false

/**
 * Mends the faults of kafkajs 2.2.4 that have no work-around from outside. Idempotent; must run before the first fetch.
 * Throws when an installed file is not the one a patch was written for.
 */
export function hardenKafkajs(): void {
  if (isHardened) return
  for (const [file, expected] of Object.entries(patchedFiles)) assertSource(file, expected)
  for (const file of mustLoadLater) {
    if (require.cache[require.resolve(file)]) {
      throw new Error(`${file} was loaded before kafkajs was hardened: create Kafka clients only through shared/kafka/client.ts`)
    }
  }
  neverStandStillAtCompactedTail()
  readBatchesOfAnySize()
  stopTimerStorm()
  isHardened = true
}

/** Throws an error that names the file when its content has another SHA-256. */
export function assertSource(file: string, expected: string): void {
  const path = require.resolve(file)
  const actual = createHash('sha256').update(readFileSync(path)).digest('hex')
  if (actual === expected) return
  throw new Error(
    `${path} is not the file this patch was written for (sha256 ${actual}, expected ${expected}): ` +
      'install kafkajs 2.2.4 exactly, or review shared/kafka/hardening.ts against the new source',
  )
}

const batchDecoder = 'kafkajs/src/protocol/recordBatch/v0/decoder.js'

type DecodeBatch = (decoder: object) => Promise<DecodedBatch>
type DecodedBatch = {
  readonly firstOffset: string
  readonly lastOffsetDelta: number
  readonly maxTimestamp: string
  readonly records: { readonly offset: string }[]
}

/**
 * A batch whose tail was compacted away (or which was emptied) decodes to records that end before the batch does. kafkajs asks next
 * for the offset after the last record, gets the same batch, and stands still for ever at a segment's end.
 * A synthetic control record at the batch's last offset moves the position on and is never shown to a handler.
 */
function neverStandStillAtCompactedTail(): void {
  const decode = require(batchDecoder) as DecodeBatch
  const patched: DecodeBatch = async (decoder) => {
    const batch = await decode(decoder)
    const { records, ...batchContext } = batch
    const lastOffset = (BigInt(batch.firstOffset) + BigInt(batch.lastOffsetDelta)).toString()
    if (records.at(-1)?.offset === lastOffset) return batch
    const tail = {
      magicByte: 2, attributes: 0, timestamp: batch.maxTimestamp, offset: lastOffset,
      key: null, value: null, headers: {}, isControlRecord: true, batchContext,
    }
    return { ...batch, records: [...records, tail] }
  }
  replaceModule(batchDecoder, patched)
}

type Decoder = {
  readonly buffer: Buffer
  readonly offset: number
  readInt32(): number
  readBytes(length: number): Buffer
  canReadBytes(length: number): boolean
}

/** Where the magic byte is in a batch, its value since Kafka 0.11, and what is too short to be the rest of a batch (Kafka, RecordBatch). */
const magicAt = 16
const presentMagic = 2
const leastBatchBytes = 49

/**
 * kafkajs passes the records of a batch as arguments of one call. With more than about 120,000 (well compressed they fit into 1 MB) the
 * stack is too small for them, and the consumer ends for good, again at each start. Batches are taken record by record instead.
 */
function readBatchesOfAnySize(): void {
  const file = 'kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js'
  const decode = require(file) as (decoder: Decoder) => Promise<object[]>
  const decodeBatch = require(batchDecoder) as DecodeBatch
  const NewDecoder = require('kafkajs/src/protocol/decoder.js') as new (buffer: Buffer) => Decoder
  const patched = async (decoder: Decoder): Promise<object[]> => {
    const { buffer, offset } = decoder
    const length = buffer.readInt32BE(offset)
    const isPresent = length > magicAt && decoder.canReadBytes(4 + length) && buffer.readInt8(offset + 4 + magicAt) === presentMagic
    if (!isPresent) return decode(decoder)
    const batches = new NewDecoder(decoder.readBytes(decoder.readInt32()))
    const records: object[] = []
    while (batches.canReadBytes(leastBatchBytes)) {
      try {
        for (const record of (await decodeBatch(batches)).records) records.push(record)
      } catch (error) {
        // The brokers cut an answer off at its limit, in the middle of a batch.
        if ((error as Error).name === 'KafkaJSPartialMessageError') break
        throw error
      }
    }
    return records
  }
  replaceModule(file, patched)
}

function replaceModule(file: string, exports: unknown): void {
  const cached = require.cache[require.resolve(file)]
  if (!cached) throw new Error(`${file} was required and is not in the module cache: kafkajs cannot be hardened`)
  cached.exports = exports
}

type RequestQueue = {
  readonly pending: readonly unknown[]
  readonly throttledUntil: number
  throttleCheckTimeoutId: NodeJS.Timeout | null
  checkPendingRequests(): void
  scheduleCheckPendingRequests(): void
}

const leastCheckIntervalMs = 10

/** Each connection of kafkajs re-arms a timer of -1 - now ms (so 1 ms) for ever, with nothing to wait for; now only what is pending is. */
function stopTimerStorm(): void {
  const { prototype } = require('kafkajs/src/network/requestQueue/index.js') as { prototype: RequestQueue }
  prototype.scheduleCheckPendingRequests = function () {
    if (this.throttleCheckTimeoutId || this.pending.length === 0) return
    const delayMs = Math.max(this.throttledUntil - Date.now(), leastCheckIntervalMs)
    this.throttleCheckTimeoutId = setTimeout(() => {
      this.throttleCheckTimeoutId = null
      this.checkPendingRequests()
    }, delayMs)
  }
}
