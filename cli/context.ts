import { exitCodes } from '../shared/lifecycle/exit-codes.ts'
import { CliError } from './cli-error.ts'
import { createOutput, type Output, type OutputFormat } from './output.ts'

/** The options every command takes. */
export type CommonOptions = { readonly output: OutputFormat; readonly quiet?: boolean; readonly verbose?: boolean }

/** What a command has to work with. */
export type Context = {
  readonly output: Output
  readonly isVerbose: boolean
  /** Aborted by SIGINT or SIGTERM; a second one ends the process at once. */
  readonly signal: AbortSignal
  /**
   * Waits for `work`; says what is being done when it takes over two seconds. Rejects when interrupted, and after `deadlineMs` with
   * `onTimeout()`; the work itself is not stopped then.
   */
  wait<Value>(
    doing: string | (() => string), work: Promise<Value>, limit?: { readonly deadlineMs: number; readonly onTimeout: () => CliError },
  ): Promise<Value>
  /** Until `done`, or until nobody reads the output; rejects when interrupted. For what waits for others, and so shows no progress. */
  follow(done: Promise<void>): Promise<void>
}

const silentMs = 2_000

export function createContext({ output: format, quiet = false, verbose = false }: CommonOptions): Context {
  const output = createOutput({ format, isQuiet: quiet })
  const signal = listenForSignals()
  return {
    output, signal, isVerbose: verbose,
    async wait(doing, work, limit) {
      work.catch(() => {}) // Whoever lost the race below must not end the process.
      signal.throwIfAborted()
      const { promise: cut, reject } = Promise.withResolvers<never>()
      const onAbort = (): void => reject(signal.reason as CliError)
      signal.addEventListener('abort', onAbort)
      const deadline = limit && setTimeout(() => reject(limit.onTimeout()), limit.deadlineMs)
      let hideProgress = (): void => {}
      const patience = setTimeout(() => { hideProgress = output.progress(doing) }, silentMs)
      try {
        return await Promise.race([work, cut])
      } finally {
        clearTimeout(deadline)
        clearTimeout(patience)
        hideProgress()
        signal.removeEventListener('abort', onAbort)
      }
    },
    async follow(done) {
      signal.throwIfAborted()
      const { promise: cut, reject } = Promise.withResolvers<never>()
      signal.addEventListener('abort', () => reject(signal.reason as CliError), { once: true })
      await Promise.race([done, output.closed, cut])
    },
  }
}

function listenForSignals(): AbortSignal {
  const controller = new AbortController()
  const onSignal = (code: 'interrupted' | 'terminated') => (): void => {
    if (controller.signal.aborted) process.exit(code === 'interrupted' ? exitCodes.interrupted : exitCodes.terminated)
    controller.abort(new CliError(code, code))
  }
  process.on('SIGINT', onSignal('interrupted'))
  process.on('SIGTERM', onSignal('terminated'))
  return controller.signal
}
