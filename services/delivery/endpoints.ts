import { createCompletionRate, type CompletionRate } from '../../shared/domain/completion-rate.ts'
import { createEndpointCap, type EndpointCap, type LoadSign } from '../../shared/domain/endpoint-cap.ts'
import { createAttemptHistory, type AttemptHistory, type EndpointHealth, type HealthBand } from '../../shared/domain/health.ts'
import { createThrottle, type Throttle } from '../../shared/domain/throttle.ts'
import type { EndpointView } from './judge.ts'

/** What this process knows of one endpoint, and how it is treated. Times in epoch ms, broker time. */
export type Endpoint = EndpointView & {
  readonly key: string
  readonly cap: EndpointCap
  readonly history: AttemptHistory
  readonly throttle: Throttle
  readonly rate: CompletionRate
  goneAt: number | null
  goneWrittenAt: number | null
  lastError: string | null
  lastStatus: number | null
  lastUsedAt: number
}

export type Finished = {
  readonly request: number
  readonly sign: LoadSign
  readonly isSuccess: boolean
  readonly status: number | null
  readonly error: string | null
}

export type Endpoints = {
  get(key: string): Endpoint
  /** Records what an HTTP attempt returned. */
  finished(endpoint: Endpoint, attempt: Finished): void
  /** Makes the endpoint quiet; what is due before its end waits in tiers. */
  throttle(endpoint: Endpoint, throttleMs: number, heldCount: number): void
  /** Its subscriptions with a record up to `goneAt` count as disabled from now on. Resolves when Kafka has it. */
  markGone(endpoint: Endpoint, goneAt: number): Promise<void>
  /** Forgets endpoints of partitions that were lost: their new owner knows better. */
  forget(isLost: (key: string) => boolean): void
  /** Writes everything that was not written yet; resolves when Kafka has it, and what was on its way before. */
  flush(): Promise<void>
  countByBand(): Record<HealthBand, number>
  throttledCount(): number
  close(): void
}

/** At most one record per endpoint in this time, unless its band, throttle or gone changed. */
const writeEveryMs = 10_000
const tickMs = 1_000
/** An endpoint that nothing was sent to for so long is loaded from its record again when it is next needed. */
const idleMs = 10 * 60_000

/**
 * The endpoints in use. State is loaded from `endpoint-health` when one is first needed and written back by the owner of its key only;
 * the owner trusts its own memory.
 */
export function createEndpoints(options: {
  /** The last record of a key; undefined where there is none. */
  readonly load: (key: string) => EndpointHealth | undefined
  readonly write: (health: EndpointHealth) => Promise<void>
  readonly isOwner: (key: string) => boolean
  readonly now: () => number
  readonly capStart: number
  readonly capMax: number
  readonly onWriteFailed: (key: string, error: unknown) => void
}): Endpoints {
  const { load, write, isOwner, now } = options
  const endpoints = new Map<string, Endpoint>()
  const unwritten = new Map<string, Endpoint>()
  const writing = new Set<Promise<void>>()
  const writtenAt = new Map<string, number>()

  function get(key: string): Endpoint {
    let endpoint = endpoints.get(key)
    if (!endpoint) {
      endpoint = restore(key)
      endpoints.set(key, endpoint)
    }
    endpoint.lastUsedAt = now()
    return endpoint
  }

  function restore(key: string): Endpoint {
    const record = load(key)
    const throttle = createThrottle(record)
    const cap = createEndpointCap({ start: options.capStart, max: options.capMax })
    if (record?.throttledUntil != null) cap.afterThrottle()
    return {
      key, cap, throttle,
      history: createAttemptHistory(record),
      rate: createCompletionRate(),
      goneAt: record?.goneAt ?? null,
      goneWrittenAt: record?.goneWrittenAt ?? null,
      lastError: record?.lastError ?? null,
      lastStatus: record?.lastStatus ?? null,
      lastUsedAt: now(),
      isThrottled: (at) => throttle.isThrottled(at),
    }
  }

  /** Never rejects. */
  function writeNow(endpoint: Endpoint): Promise<void> {
    unwritten.delete(endpoint.key)
    if (!isOwner(endpoint.key)) return Promise.resolve()
    writtenAt.set(endpoint.key, now())
    const written = writeRecord(endpoint).finally(() => writing.delete(written))
    writing.add(written)
    return written
  }

  async function writeRecord(endpoint: Endpoint): Promise<void> {
    try {
      await write({
        endpointKey: endpoint.key,
        attempts: endpoint.history.pack(),
        band: endpoint.history.band,
        throttledUntil: endpoint.throttle.throttledUntil,
        throttleRatePerSecond: endpoint.throttle.ratePerSecond,
        goneAt: endpoint.goneAt,
        goneWrittenAt: endpoint.goneWrittenAt,
        lastError: endpoint.lastError,
        lastStatus: endpoint.lastStatus,
        updatedAt: now(),
      })
    } catch (error) {
      unwritten.set(endpoint.key, endpoint)
      options.onWriteFailed(endpoint.key, error)
    }
  }

  const isDueToWrite = (key: string): boolean => now() - (writtenAt.get(key) ?? -Infinity) >= writeEveryMs

  const timer = setInterval(() => {
    for (const endpoint of unwritten.values()) if (isDueToWrite(endpoint.key)) void writeNow(endpoint)
    const idleSince = now() - idleMs
    for (const [key, endpoint] of endpoints) {
      if (endpoint.lastUsedAt > idleSince || endpoint.cap.inFlight > 0 || unwritten.has(key)) continue
      endpoints.delete(key)
      writtenAt.delete(key)
    }
  }, tickMs)

  return {
    get,

    finished(endpoint, { request, sign, isSuccess, status, error }) {
      endpoint.cap.end(request, sign)
      endpoint.rate.completed(now())
      endpoint.lastStatus = status
      if (error !== null) endpoint.lastError = error
      const isBandChanged = endpoint.history.record(now(), isSuccess)
      if (isBandChanged || isDueToWrite(endpoint.key)) void writeNow(endpoint)
      else unwritten.set(endpoint.key, endpoint)
    },

    throttle(endpoint, throttleMs, heldCount) {
      const wasThrottled = endpoint.throttle.isThrottled(now())
      const isNews = endpoint.throttle.throttle({ now: now(), throttleMs, heldCount, recentRatePerSecond: endpoint.rate.ratePerSecond(now()) })
      // What waits now waits for the end of the quiet: counted as time it could have worked in, its rate would fall to nothing.
      endpoint.rate.setBacklog(false, now())
      if (!wasThrottled) endpoint.cap.afterThrottle()
      if (isNews) void writeNow(endpoint)
    },

    async markGone(endpoint, goneAt) {
      endpoint.goneAt = Math.max(goneAt, endpoint.goneAt ?? 0)
      endpoint.goneWrittenAt = now()
      await writeNow(endpoint)
    },

    forget(isLost) {
      for (const key of endpoints.keys()) {
        if (!isLost(key)) continue
        endpoints.delete(key)
        unwritten.delete(key)
        writtenAt.delete(key)
      }
    },

    async flush() {
      for (const endpoint of unwritten.values()) void writeNow(endpoint)
      await Promise.all(writing)
    },

    countByBand() {
      const counts: Record<HealthBand, number> = { healthy: 0, degraded: 0, unhealthy: 0 }
      for (const { history } of endpoints.values()) counts[history.band] += 1
      return counts
    },

    throttledCount() {
      let count = 0
      for (const endpoint of endpoints.values()) if (endpoint.isThrottled(now())) count += 1
      return count
    },

    close: () => clearInterval(timer),
  }
}
