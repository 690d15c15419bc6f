import type { KafkaConnection } from '../../shared/kafka/client.ts'
import { startConsumer, type Consumer } from '../../shared/kafka/consumer.ts'
import type { Onward } from './onward.ts'
import type { Ready, WaitingLine } from './waiting-line.ts'

export type ServedTierOptions = {
  /** End of the topic's name: `10s`, `soon`. */
  readonly suffix: string
  readonly topic: string
  readonly groupId: string
  readonly connection: KafkaConnection
  readonly line: WaitingLine
  readonly onward: Onward
  readonly bounds: TierBounds
  readonly sessionTimeoutMs: number
  onJoined(): void
  onFailed(error: Error): void
}

/** Bytes in hand and pace of reading. */
export type TierBounds = {
  readonly windowBytes: number
  readonly partitionWindowBytes: number
  readonly maxBytesPerPartition: number
  readonly maxWaitMs: number
}

/** One retry topic that this process serves as a member of the topic's own group. */
export type ServedTier = {
  readonly suffix: string
  readonly topic: string
  readonly groupId: string
  /** Epoch ms. */
  readonly startedAt: number
  readonly consumer: Consumer
  waitingCount(): number
  inFlightCount(): number
  /** How long the record that came up first has been ready and is not written onward, ms; 0 when none is. */
  overdueMs(): number
  /** Starts nothing more, waits up to `deadlineMs` for acknowledgements, commits, leaves the group. May be called again. */
  close(deadlineMs: number): Promise<void>
}

/** Writes onward begun in one turn of the event loop; then others get theirs. */
const burst = 500
/** A hand-over waits this long for acknowledgements; what is not there by then is repeated by the new owner. */
const handOverMs = 120
/** The clock is looked at again at least this often: samples may move it, and Node's timers overflow at 2^31 ms. */
const longestSleepMs = 60_000
const refillShare = 0.5

/** Starts to serve a tier. @throws when its group cannot be joined for good */
export async function serveTier(options: ServedTierOptions): Promise<ServedTier> {
  const { suffix, topic, groupId, line, onward } = options
  const inFlight = new Set<Ready>()
  let idleWaiters: (() => void)[] = []
  let isHandingOver = false
  let isClosing = false
  let isWaitingForRoom = false
  let isDrainScheduled = false
  let timer: NodeJS.Timeout | undefined

  /** Many records arrive, and many acknowledgements, in one turn: one look at the line is enough for all of them. */
  function scheduleDrain(): void {
    if (isDrainScheduled) return
    isDrainScheduled = true
    setImmediate(() => {
      isDrainScheduled = false
      drain()
    })
  }

  function drain(): void {
    clearTimeout(timer)
    if (isHandingOver || isClosing || isWaitingForRoom) return
    if (!onward.isClockKnown()) return probeClock()
    for (let begun = 0; begun < burst; begun += 1) {
      if (!onward.hasRoom()) return waitForRoom()
      const ready = line.takeReady(onward.now())
      if (ready === null) return sleep()
      begin(ready, onward.forward(suffix, ready))
    }
    scheduleDrain()
  }

  /** One record at a time is sent ahead of its time, to where it is held again, for the sake of the acknowledgement's time. */
  function probeClock(): void {
    const first = inFlight.size === 0 ? line.takeFirst() : null
    if (first !== null) begin(first, onward.forwardAsProbe(suffix, first), scheduleDrain)
  }

  function begin(ready: Ready, writing: Promise<boolean>, after?: () => void): void {
    inFlight.add(ready)
    void writing.then((isWritten) => {
      inFlight.delete(ready)
      if (isWritten) ready.lease.done()
      if (inFlight.size === 0) {
        for (const wake of idleWaiters) wake()
        idleWaiters = []
      }
      after?.()
    }).catch((error: unknown) => options.onFailed(error instanceof Error ? error : new Error(String(error))))
  }

  function waitForRoom(): void {
    isWaitingForRoom = true
    void onward.room().then(() => {
      isWaitingForRoom = false
      drain()
    })
  }

  function sleep(): void {
    timer = undefined
    const nextReadyAt = line.nextReadyAt()
    if (nextReadyAt === null) return
    const sleepMs = Math.min(Math.max(Math.ceil(nextReadyAt - onward.now()), 1), longestSleepMs)
    timer = setTimeout(() => {
      timer = undefined
      drain()
    }, sleepMs)
  }

  async function idle(deadlineMs: number): Promise<void> {
    if (inFlight.size === 0) return
    let timeout: NodeJS.Timeout | undefined
    await Promise.race([
      new Promise<void>((resolve) => { idleWaiters.push(resolve) }),
      new Promise<void>((resolve) => { timeout = setTimeout(resolve, deadlineMs) }),
    ])
    clearTimeout(timeout)
  }

  const consumer = await startConsumer({
    connection: options.connection,
    groupId,
    topics: [topic],
    refillShare,
    ...options.bounds,
    sessionTimeoutMs: options.sessionTimeoutMs,
    handlers: {
      onRecord(lease) {
        line.push(lease)
        scheduleDrain()
      },
      async beforeJoin() {
        isHandingOver = true
        await idle(handOverMs)
      },
      async afterJoin() {
        isHandingOver = false
        options.onJoined()
        scheduleDrain()
      },
      onLost: () => line.dropLost(),
      onFailed: options.onFailed,
    },
  })

  let closing: Promise<void> | null = null
  return {
    suffix, topic, groupId, consumer,
    startedAt: Date.now(),
    waitingCount: () => line.size,
    inFlightCount: () => inFlight.size,
    overdueMs() {
      const [oldest] = inFlight
      const readyAt = oldest?.readyAt ?? line.nextReadyAt()
      return readyAt === null ? 0 : Math.max(0, onward.now() - readyAt)
    },
    close: (deadlineMs) => (closing ??= (async () => {
      isClosing = true
      clearTimeout(timer)
      consumer.stopTaking()
      await idle(deadlineMs)
      await consumer.close()
    })()),
  }
}
