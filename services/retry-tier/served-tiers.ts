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
  /** Looks at the topics now, resolves when those found are served, and looks again every `intervalMs`. */
  start(): Promise<void>
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
  let closing: Promise<void> | null = null

  /** Returns the starts it began, which may take as long as Kafka is away. */
  async function lookOnce(): Promise<Promise<void>[]> {
    const topics = await options.listTopics()
    const fresh = topics.filter(({ suffix }) =>
      (servedSuffixes === null || servedSuffixes.includes(suffix)) && !served.has(suffix) && !starting.has(suffix))
    const faults = fresh.length > 0 ? await options.findFaults(fresh) : new Map<string, string>()
    // The tiers to write to are known before the first record is read.
    targetDelaysMs = configuredDelaysMs.filter((delayMs) => topics.some(({ suffix }) => suffix === tierTopicSuffix(delayMs)))
    problems = new Map(faults)
    for (const [topic, fault] of faults) log.error('a retry topic is not served', { topic, fault })
    const starts = fresh.filter(({ name }) => !faults.has(name)).map(start)
    await Promise.all([...served.keys()].map((suffix) => closeIfGone(suffix, topics)))
    return starts
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

  async function look(): Promise<void> {
    let starts: Promise<void>[] = []
    try {
      starts = await lookOnce()
    } catch (error) {
      problems.set('topics', 'retry topics cannot be listed: Kafka does not answer')
      log.warn('retry topics could not be listed: tried again later', { intervalMs: options.intervalMs, error })
    }
    if (!closing) timer = setTimeout(() => void look(), options.intervalMs)
    await Promise.all(starts)
  }

  return {
    current: () => [...served.values()],
    targetDelaysMs: () => targetDelaysMs,
    problems: () => [...problems.values(), ...[...starting].map((suffix) => `tier ${suffix} is being joined`)],
    start: look,
    close: (deadlineMs) => (closing ??= (async () => {
      clearTimeout(timer)
      // One that is still joining closes itself.
      await Promise.all([...served.values()].map((tier) => tier.close(deadlineMs)))
    })()),
  }
}
