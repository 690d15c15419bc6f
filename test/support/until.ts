import { setTimeout as delay } from 'node:timers/promises'

export type UntilOptions = {
  /** How long to wait before giving up; default 10 s. Generous, since it is only ever used up by a test that fails. */
  readonly deadlineMs?: number
  /** What was waited for, said when the deadline passes; a function may say how far things had got. */
  readonly message?: string | (() => string)
  /** Between two looks; default 10 ms. */
  readonly intervalMs?: number
}

/** What `until` resolves to: the condition's value without those that mean "not yet". */
type Truthy<Value> = Exclude<Value, false | null | undefined | 0 | ''>

/**
 * Looks at a condition until it is truthy and returns that value. The condition may be async; what it throws ends the wait at once,
 * so that a broken condition is not mistaken for a slow one. Rejects when the deadline passes.
 */
export async function until<Value>(
  condition: () => Value | Promise<Value>,
  { deadlineMs = 10_000, message = 'the condition to hold', intervalMs = 10 }: UntilOptions = {},
): Promise<Truthy<Value>> {
  const endsAt = performance.now() + deadlineMs
  for (;;) {
    const value = await condition()
    if (value) return value as Truthy<Value>
    if (performance.now() >= endsAt) {
      const what = typeof message === 'string' ? message : message()
      throw new Error(`waited ${deadlineMs} ms in vain for ${what}`)
    }
    await delay(intervalMs)
  }
}
