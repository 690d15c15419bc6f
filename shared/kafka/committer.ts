import type { KafkaLog } from './client.ts'
import { refreshCoordinatorIfMoved, type GroupInternals, type TopicCommit } from './membership.ts'
import type { PartitionWindow } from './partition-window.ts'

export type Committer = {
  /** Commits what is left while the partitions are still ours, and nothing after it. Never throws: what is not committed is read again. */
  commitLast(): Promise<void>
  /** Commits nothing more. */
  stop(): void
}

/** A last commit waits this long for a broker that does not answer. */
const lastCommitMs = 5_000
/** One commit that fails is nothing; for so long it means that a restart would repeat all since. Said again as often. */
const sayFailingMs = 60_000

/**
 * Commits the windows' ledgers every `intervalMs` where something changed, in one generation.
 * The offset manager of the join is kept: it carries member and generation, so that the broker refuses a commit that comes too late,
 * where kafkajs's own commitOffsets would take the generation of the moment and set back a partition's new owner.
 */
export function createCommitter(options: {
  group: GroupInternals
  windows: () => Iterable<PartitionWindow>
  log: KafkaLog
  intervalMs: number
}): Committer {
  const { group, log } = options
  const offsetManager = group.offsetManager
  let running: Promise<void> | null = null
  let isStopped = false
  let withMetadata = true
  let failingSince: number | null = null

  async function commit(): Promise<void> {
    const pending = [...options.windows()].flatMap((window) => {
      const commit = window.isHeld ? window.ledger.commit() : null
      return commit ? [{ window, ledger: window.ledger, commit }] : []
    })
    if (pending.length === 0 || !offsetManager) return
    const topics = new Map<string, TopicCommit['partitions'][number][]>()
    for (const { window, commit } of pending) {
      const partitions = topics.get(window.topic) ?? []
      partitions.push({
        partition: window.partition,
        offset: String(commit.offset),
        metadata: window.tag + (withMetadata ? commit.metadata : ''),
      })
      topics.set(window.topic, partitions)
    }
    try {
      await offsetManager.commitOffsets({ topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })) })
      failingSince = null
      for (const { ledger, commit } of pending) ledger.markCommitted(commit)
    } catch (error) {
      await onRefused(error)
    }
  }

  async function onRefused(error: unknown): Promise<void> {
    const { type, message } = error as { type?: string; message?: string }
    if (type === 'OFFSET_METADATA_TOO_LARGE') {
      // The broker allows less than Kafka's default: repeats after a crash are better than no commit at all.
      withMetadata = false
      log('warn', 'offset metadata refused as too large: committing without the set of finished records', { groupId: group.groupId })
      return
    }
    failingSince ??= performance.now()
    const isLong = performance.now() - failingSince >= sayFailingMs
    if (isLong) failingSince = performance.now()
    log(isLong ? 'warn' : 'debug', 'offset commit failed; the next one will carry it', { groupId: group.groupId, type, message })
    await refreshCoordinatorIfMoved(group, error).catch((cause: unknown) => {
      log('debug', 'group coordinator not found yet', { groupId: group.groupId, message: String(cause) })
    })
  }

  const once = (): Promise<void> => (running ??= commit().finally(() => { running = null }))
  const timer = setInterval(() => {
    if (!isStopped) void once()
  }, options.intervalMs)

  const stop = (): void => {
    isStopped = true
    clearInterval(timer)
  }
  return {
    stop,
    async commitLast() {
      if (isStopped) return
      stop()
      // One under way was gathered earlier and may lack what has finished since.
      const last = (running ?? Promise.resolve()).then(once)
      let timeout: NodeJS.Timeout | undefined
      await Promise.race([last, new Promise<void>((resolve) => { timeout = setTimeout(resolve, lastCommitMs) })])
      clearTimeout(timeout)
    },
  }
}
