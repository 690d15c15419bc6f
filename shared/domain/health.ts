/** healthy: band score above 0.9; degraded: above 0.5; unhealthy: the rest. The same bounds as the adaptive factor's. */
export const healthBands = ['healthy', 'degraded', 'unhealthy'] as const
export type HealthBand = (typeof healthBands)[number]

/** What the owner of an endpoint knows of it, as written to the `endpoint-health` topic. Times in epoch ms. */
export type EndpointHealth = {
  readonly endpointKey: string
  /** The recent attempts, see AttemptHistory.pack. */
  readonly attempts: Buffer
  readonly band: HealthBand
  readonly throttledUntil: number | null
  /** How many may leave the line per second when the throttle ends. */
  readonly throttleRatePerSecond: number | null
  /** Append time of the subscription record with which the endpoint answered 410. */
  readonly goneAt: number | null
  /** When that was noticed, broker time: a delivery routed before it is a dead letter, one routed later is not wanted. */
  readonly goneWrittenAt: number | null
  readonly lastError: string | null
  readonly lastStatus: number | null
  readonly updatedAt: number
}

/** The last 100 attempts of an endpoint: when, to the second, and whether it succeeded. */
export type AttemptHistory = {
  readonly count: number
  readonly band: HealthBand
  /** Every HTTP attempt. True: the band changed by it. */
  record(at: number, isSuccess: boolean): boolean
  /**
   * health(e) = sum of success * e^(-0.1 * age in hours) over the recent attempts, divided by their number; 1 without any.
   * From 0 to 1. Falls while the endpoint is merely idle; drives the adaptive factor.
   */
  score(now: number): number
  /** The same sum divided by the sum of the weights: changes with attempts only, not with time. 1 without any. */
  bandScore(): number
  /** A byte of version and 4 for each attempt, oldest first: seconds since 2020 * 2 + success, big endian. At most 401. */
  pack(): Buffer
}

export const recentAttempts = 100
export const decayPerHour = 0.1

const packVersion = 1
/** 2020-01-01 in epoch seconds: 31 bits from then last until 2088. */
const epochSeconds = 1_577_836_800
const decayPerSecond = decayPerHour / 3600
const firstCapacity = 4

export function bandOf(bandScore: number): HealthBand {
  return bandScore > 0.9 ? 'healthy' : bandScore > 0.5 ? 'degraded' : 'unhealthy'
}

/** `attempts`: as packed; what cannot be read counts as none. `band`: as it was, kept until an attempt changes it. */
export function createAttemptHistory(restored?: { readonly attempts: Uint8Array | null; readonly band?: HealthBand }): AttemptHistory {
  // Seconds since 2020 * 2 + success, in a ring that grows: most endpoints of a large installation see few attempts.
  let ring = unpack(restored?.attempts ?? null)
  let count = ring.length
  let oldest = 0

  // Ages are never below 0: an attempt recorded by a clock that was ahead counts as one of now, not as many.
  const secondsOf = (index: number) => ring[index]! >>> 1
  const isSuccessAt = (index: number) => (ring[index]! & 1) === 1

  function bandScore(): number {
    if (count === 0) return 1
    // Weighed as of the last attempt: the quotient is the same as now, and old ones cannot all vanish to 0/0.
    const lastSeconds = secondsOf((oldest + count - 1) % count)
    let good = 0
    let all = 0
    for (let i = 0; i < count; i += 1) {
      const weight = Math.exp(-Math.max(0, lastSeconds - secondsOf(i)) * decayPerSecond)
      all += weight
      if (isSuccessAt(i)) good += weight
    }
    return good / all
  }

  let band = count === 0 ? 'healthy' : (restored?.band ?? bandOf(bandScore()))

  return {
    get count() {
      return count
    },
    get band() {
      return band
    },

    record(at, isSuccess) {
      if (count === ring.length && count < recentAttempts) {
        const larger = new Uint32Array(Math.min(recentAttempts, Math.max(firstCapacity, count * 2)))
        larger.set(ring)
        ring = larger
      }
      const entry = packed(at, isSuccess)
      if (count < recentAttempts) {
        ring[count] = entry
        count += 1
      } else {
        ring[oldest] = entry
        oldest = (oldest + 1) % recentAttempts
      }
      // The usual case, and a success can make nothing worse: no sum.
      if (isSuccess && band === 'healthy') return false
      const next = bandOf(bandScore())
      const isWorse = healthBands.indexOf(next) > healthBands.indexOf(band)
      if (next === band || (isSuccess && isWorse)) return false
      band = next
      return true
    },

    score(now) {
      if (count === 0) return 1
      const nowSeconds = now / 1000 - epochSeconds
      let good = 0
      for (let i = 0; i < count; i += 1) {
        if (isSuccessAt(i)) good += Math.exp(-Math.max(0, nowSeconds - secondsOf(i)) * decayPerSecond)
      }
      return good / count
    },

    bandScore,

    pack() {
      const bytes = Buffer.allocUnsafe(1 + count * 4)
      bytes[0] = packVersion
      for (let i = 0; i < count; i += 1) bytes.writeUInt32BE(ring[(oldest + i) % count]!, 1 + i * 4)
      return bytes
    },
  }
}

function packed(at: number, isSuccess: boolean): number {
  const seconds = Math.min(2 ** 31 - 1, Math.max(0, Math.floor(at / 1000) - epochSeconds))
  return seconds * 2 + (isSuccess ? 1 : 0)
}

function unpack(bytes: Uint8Array | null): Uint32Array<ArrayBuffer> {
  if (bytes === null || bytes[0] !== packVersion || bytes.length % 4 !== 1) return new Uint32Array(0)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const stored = (bytes.length - 1) / 4
  const count = Math.min(stored, recentAttempts)
  return Uint32Array.from({ length: count }, (_, i) => view.getUint32(1 + (stored - count + i) * 4))
}
