import type { KafkaLog } from './client.ts'

/** Answers of the brokers, epoch ms: the first since one failed, and the last; null while they fail. */
export type Answering = { readonly since: number; readonly lastAt: number } | null

export type BrokerWatch = {
  answering(): Answering
  /** Asks no more; resolves once nothing is under way, so that the client may be closed. */
  close(): Promise<void>
}

const defaultIntervalMs = 5_000

/**
 * Asks the brokers again and again, on a connection of its own: a witness of whether they answer that does not depend on the clients
 * it is to judge. `ask` should give up after a few tries.
 */
export function watchBrokers(ask: () => Promise<unknown>, { intervalMs = defaultIntervalMs, log }: { readonly intervalMs?: number; readonly log: KafkaLog }): BrokerWatch {
  let answering: Answering = null
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void>

  async function look(): Promise<void> {
    try {
      await ask()
      const now = Date.now()
      answering = { since: answering?.since ?? now, lastAt: now }
    } catch (error) {
      if (!isClosed) log(answering === null ? 'debug' : 'warn', 'the brokers do not answer; they are asked again', { intervalMs, error: String(error) })
      answering = null
    }
    if (!isClosed) timer = setTimeout(() => { looking = look() }, intervalMs)
  }

  looking = look()
  return {
    answering: () => answering,
    close() {
      isClosed = true
      clearTimeout(timer)
      return looking
    },
  }
}
