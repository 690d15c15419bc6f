/** Work that a drain must wait for. */
export type UnderWay = {
  /** Counts the task until it has ended. What it throws is a fault of ours, and goes to `onFault`. */
  run(task: () => Promise<void>): void
  /** Resolves when nothing is under way, or after `deadlineMs`: true if nothing is. */
  idle(deadlineMs: number): Promise<boolean>
}

export function createUnderWay(onFault: (error: unknown) => void): UnderWay {
  let count = 0
  let waiters: (() => void)[] = []

  async function counted(task: () => Promise<void>): Promise<void> {
    count += 1
    try {
      await task()
    } catch (error) {
      onFault(error)
    } finally {
      count -= 1
      if (count === 0) {
        const waiting = waiters
        waiters = []
        for (const wake of waiting) wake()
      }
    }
  }

  return {
    run: (task) => { void counted(task) },
    async idle(deadlineMs) {
      if (count === 0) return true
      let timer: NodeJS.Timeout | undefined
      await Promise.race([
        new Promise<void>((resolve) => { waiters.push(resolve) }),
        new Promise<void>((resolve) => { timer = setTimeout(resolve, deadlineMs) }),
      ])
      clearTimeout(timer)
      return count === 0
    },
  }
}
