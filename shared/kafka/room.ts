/** Waits until something has become free. */
export type Room = {
  /** Something is free: everybody who waits looks again. */
  wake(): void
  /** Resolves at the next `wake()`, or after `ms`. */
  wait(ms: number): Promise<void>
}

export function createRoom(): Room {
  let waiters: (() => void)[] = []
  return {
    wake() {
      const waiting = waiters
      waiters = []
      for (const resolve of waiting) resolve()
    },
    wait: (ms) => new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      waiters.push(() => {
        clearTimeout(timer)
        resolve()
      })
    }),
  }
}
