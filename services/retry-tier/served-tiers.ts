import type { Log } from '../../shared/log/log.ts'
import { tierTopicSuffix } from '../../shared/domain/hops.ts'
import type { RetryTopic } from '../../shared/kafka/topics.ts'
import type { ServedTier } from './served-tier.ts'

export type ServedTiersOptions = {
  /** All retry topics that exist now. */
  listTopics(): Promise<readonly RetryTopic[]>
  /** Finds topics in which waiting would go wrong: what is wrong with each, by its full name. */
  findFaults(topics: readonly RetryTopic[]): Promise<ReadonlyMap<string, string>>
  serve(topic: RetryTopic): Promise<ServedTier>
  /** null: every one there is. */
  readonly servedSuffixes: readonly string[] | null
  readonly configuredDelaysMs: readonly number[]
  readonly intervalMs: number
  readonly log: Log
}

/** The retry topics this process serves. Looked for again and again, so that nothing waits unread after a change of configuration. */
export type ServedTiers = {
  current(): readonly ServedTier[]
  /** Delays of the tiers that may be written to: configured, and their topics exist. */
  targetDelaysMs(): readonly number[]
  /** Why a topic that is there is not served, one line each. */
  problems(): readonly string[]
  /** Looks at the topics now. @throws when Kafka gives no answer */
  look(): Promise<void>
  /** From now on looks every `intervalMs`. */
  keepLooking(): void
  /** Waits for acknowledgements up to `deadlineMs`, commits, leaves the groups. May be called again. */
  close(deadlineMs: number): Promise<void>
}

/** A topic missing this often in a row is gone: one metadata answer may be incomplete. */
const missesUntilGone = 2
/** A deleted topic has nothing to wait for. */
const goneCloseMs = 1_000

export function createServedTiers(options: ServedTiersOptions): ServedTiers {
  const { servedSuffixes, configuredDelaysMs, log } = options
  const served = new Map<string, ServedTier>()
  const starting = new Set<string>()
  const misses = new Map<string, number>()
  let problems = new Map<string, string>()
  let targetDelaysMs: readonly number[] = []
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | null = null
  let closing: Promise<void> | null = null

  async function lookOnce(): Promise<void> {
    const topics = await options.listTopics()
    const fresh = topics.filter(({ suffix }) =>
      (servedSuffixes === null || servedSuffixes.includes(suffix)) && !served.has(suffix) && !starting.has(suffix))
    const faults = fresh.length > 0 ? await options.findFaults(fresh) : new Map<string, string>()
    // The tiers to write to are known before the first record is read.
    targetDelaysMs = configuredDelaysMs.filter((delayMs) => topics.some(({ suffix }) => suffix === tierTopicSuffix(delayMs)))
    problems = new Map(faults)
    for (const [topic, fault] of faults) log.error('a retry topic is not served', { topic, fault })
    await Promise.all([
      ...fresh.filter(({ name }) => !faults.has(name)).map(start),
      ...[...served.keys()].map((suffix) => closeIfGone(suffix, topics)),
    ])
  }

  function start(topic: RetryTopic): Promise<void> {
    starting.add(topic.suffix)
    return startOne(topic).finally(() => starting.delete(topic.suffix))
  }

  async function startOne(topic: RetryTopic): Promise<void> {
    try {
      const tier = await options.serve(topic)
      if (closing) return await tier.close(0)
      served.set(topic.suffix, tier)
      log.info('serving a retry topic', { topic: topic.name })
    } catch (error) {
      // Most likely deleted since it was listed; the next look tells.
      problems.set(topic.name, `${topic.name} could not be served: ${String(error)}`)
      log.error('a retry topic could not be served: it is tried again', { topic: topic.name, error })
    }
  }

  async function closeIfGone(suffix: string, topics: readonly RetryTopic[]): Promise<void> {
    const missed = topics.some((topic) => topic.suffix === suffix) ? 0 : (misses.get(suffix) ?? 0) + 1
    misses.set(suffix, missed)
    if (missed < missesUntilGone) return
    const tier = served.get(suffix)
    served.delete(suffix)
    misses.delete(suffix)
    log.warn('a retry topic was deleted: what waited in it is lost', { topic: tier?.topic, waiting: tier?.waitingCount() })
    await tier?.close(goneCloseMs)
  }

  const look = (): Promise<void> => (looking ??= lookOnce().finally(() => { looking = null }))

  function keepLooking(): void {
    timer = setTimeout(() => {
      void look()
        .catch((error: unknown) => log.warn('retry topics could not be listed: tried again later', { error }))
        .finally(() => { if (!closing) keepLooking() })
    }, options.intervalMs)
  }

  return {
    current: () => [...served.values()],
    targetDelaysMs: () => targetDelaysMs,
    problems: () => [...problems.values()],
    look,
    keepLooking,
    close: (deadlineMs) => (closing ??= (async () => {
      clearTimeout(timer)
      // One that is still joining closes itself.
      await Promise.all([...served.values()].map((tier) => tier.close(deadlineMs)))
    })()),
  }
}
