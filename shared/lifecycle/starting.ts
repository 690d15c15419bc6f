import { setTimeout as delay } from 'node:timers/promises'

export type Patience = {
  readonly signal: AbortSignal
  /** Whether waiting can mend this error. */
  isPassing(error: unknown): boolean
  onFailure(error: unknown, pauseMs: number): void
  readonly pauseMs?: number
}

const defaultPauseMs = 2_000

/** Asks until there is an answer. @throws what waiting will not mend, or when `signal` aborts */
export async function patiently<Answer>(ask: () => Promise<Answer>, { signal, isPassing, onFailure, pauseMs = defaultPauseMs }: Patience): Promise<Answer> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isPassing(error)) throw error
      onFailure(error, pauseMs)
      await delay(pauseMs, undefined, { signal })
    }
  }
}

/** Rejects when a stop is asked for: a client that waits for its brokers cannot be called off otherwise. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const giveUp = (): void => reject(new Error('stopped before the start was completed'))
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
  })
}
