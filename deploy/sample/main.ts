import { exitCodes } from '../../shared/lifecycle/exit-codes.ts'
import { parseOptions, usage } from './options.ts'
import { runSample } from './sample.ts'
import { createScreen } from './screen.ts'
import { watchStarters } from './starters.ts'

/** npm passes a Ctrl-C on that the terminal has sent us too: only a later one means that the end takes too long. */
const sameSignalMs = 1_000

process.exitCode = await main(process.argv.slice(2))
// Clients of a Kafka that is gone may still try to reach it.
process.exit()

async function main(args: readonly string[]): Promise<number> {
  // Whoever reads our output may leave: that is no reason to leave anything running.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  const parsed = parseOptions(args)
  if ('help' in parsed) {
    process.stdout.write(`${usage}\n`)
    return exitCodes.ok
  }
  if ('problem' in parsed) {
    process.stderr.write(`${parsed.problem}\n\n${usage}\n`)
    return exitCodes.usage
  }
  const { options } = parsed
  const stop = listenForEnd()
  const screen = createScreen(options.isJson ? process.stderr : process.stdout)
  try {
    return await runSample({ options, screen, print: (text) => process.stdout.write(text), signal: stop.signal })
  } catch (error) {
    if (stop.signal.aborted) return stop.exitCode()
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return exitCodes.failed
  } finally {
    stop.close()
  }
}

function listenForEnd(): { readonly signal: AbortSignal; exitCode(): number; close(): void } {
  const controller = new AbortController()
  let exitCode: number = exitCodes.interrupted
  let firstAt = -Infinity
  const onSignal = (code: number) => (): void => {
    if (controller.signal.aborted) {
      // What was started is on a leash and ends with us.
      if (performance.now() - firstAt > sameSignalMs) process.exit(code)
      return
    }
    firstAt = performance.now()
    exitCode = code
    controller.abort()
  }
  process.on('SIGINT', onSignal(exitCodes.interrupted))
  process.on('SIGTERM', onSignal(exitCodes.terminated))
  process.on('SIGHUP', onSignal(exitCodes.terminated))
  return { signal: controller.signal, exitCode: () => exitCode, close: watchStarters(() => onSignal(exitCodes.terminated)()) }
}
