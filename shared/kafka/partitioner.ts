/** Mixing constants and shifts of Kafka's murmur2 (org.apache.kafka.common.utils.Utils). */
const seed = 0x9747b28c
const mix = 0x5bd1e995

/** Kafka's murmur2 of a key, as a signed 32-bit number: the same as the Java client's, in plain integer arithmetic. */
export function murmur2(key: Buffer): number {
  const length = key.length
  const whole = length & ~3
  let hash = seed ^ length
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(key.readInt32LE(at), mix)
    word = Math.imul(word ^ (word >>> 24), mix)
    hash = Math.imul(hash, mix) ^ word
  }
  const rest = length - whole
  if (rest > 2) hash ^= key.readUInt8(whole + 2) << 16
  if (rest > 1) hash ^= key.readUInt8(whole + 1) << 8
  if (rest > 0) hash = Math.imul(hash ^ key.readUInt8(whole), mix)
  hash = Math.imul(hash ^ (hash >>> 13), mix)
  return hash ^ (hash >>> 15)
}

/** The partition of a keyed record: every Kafka client with the default partitioner puts the key there. */
export function partitionOf(key: Buffer, partitionCount: number): number {
  return (murmur2(key) & 0x7fffffff) % partitionCount
}

/** Where keyless records go: partitions in turn, each topic by its own. */
export function createSpreader(): (topic: string, partitionCount: number) => number {
  const nextByTopic = new Map<string, number>()
  return (topic, partitionCount) => {
    const next = (nextByTopic.get(topic) ?? Math.floor(Math.random() * partitionCount)) % partitionCount
    nextByTopic.set(topic, next + 1)
    return next
  }
}
