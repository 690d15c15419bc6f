import { zstdCompress, zstdDecompress } from 'node:zlib'
import { promisify } from 'node:util'
import kafkajs from 'kafkajs'
import snappyCodec from 'kafkajs-snappy'
import { compressFrame, decompressFrame } from 'lz4-napi'

const { CompressionCodecs, CompressionTypes } = kafkajs

/** The names `compression.type` has in Kafka. */
export const compressionNames = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type CompressionName = (typeof compressionNames)[number]

const typeByName: Readonly<Record<CompressionName, number>> = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

/** kafkajs's number for a codec. */
export function compressionType(name: CompressionName): number {
  return typeByName[name]
}

type Encoder = { readonly buffer: Buffer }

const zstdPack = promisify(zstdCompress)
const zstdUnpack = promisify(zstdDecompress)

let isRegistered = false

/** Registers, once, the codecs kafkajs has not: without them one compressed batch from any producer ends a consumer for good. */
export function registerCodecs(): void {
  if (isRegistered) return
  isRegistered = true
  const codecs = CompressionCodecs as Record<number, unknown>
  codecs[CompressionTypes.Snappy] = snappyCodec
  codecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder: Encoder) => compressFrame(encoder.buffer),
    decompress: (packed: Buffer) => decompressFrame(packed),
  })
  codecs[CompressionTypes.ZSTD] = () => ({
    compress: (encoder: Encoder) => zstdPack(encoder.buffer),
    decompress: (packed: Buffer) => zstdUnpack(packed),
  })
}
