import { CommanderError } from 'commander'
import { exitCodes } from '../shared/lifecycle/exit-codes.ts'
import { CliError, toCliError } from './cli-error.ts'
import { writeError } from './output.ts'
import { createProgram, pathOf } from './program.ts'

process.exitCode = await main(process.argv.slice(2))
await written()
// Clients of brokers that are away would keep the process for an hour.
process.exit()

async function main(args: readonly string[]): Promise<number> {
  const program = createProgram()
  try {
    await program.parseAsync(args, { from: 'user' })
    return program.opts<{ exitCode?: number }>().exitCode ?? exitCodes.ok
  } catch (error) {
    if (error instanceof CommanderError && (error.exitCode === 0 || error.code === 'commander.help')) {
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    }
    const thrown = error instanceof CommanderError
      ? new CliError('usage', toCliError(error).message, `see "${pathOf(program, args)} --help"`)
      : toCliError(error)
    // Nobody needs to be told that they pressed Ctrl-C.
    if (thrown.code !== 'interrupted' && thrown.code !== 'terminated') writeError(thrown, wantsJson(args))
    if (args.includes('--verbose')) process.stderr.write(`${String((thrown.cause as Error | undefined)?.stack ?? thrown.stack)}\n`)
    return thrown.exitCode
  }
}

/** Looked up in the words themselves, as an error may come before they are understood. */
function wantsJson(args: readonly string[]): boolean {
  return args.some((arg, index) =>
    /^(--output=|-o)jsonl?$/.test(arg) || (/^(--output|-o)$/.test(arg) && /^jsonl?$/.test(args[index + 1] ?? '')))
}

/** Both streams have passed on what they hold: what is written to a pipe may leave later. */
async function written(): Promise<void> {
  await Promise.all([process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => {
    if (!stream.writable) return resolve()
    stream.write('', () => resolve())
  })))
}
