import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseDurationMs } from '../shared/domain/duration.ts'
import { checkPattern } from '../shared/domain/matching.ts'
import type { ExitCode } from '../shared/lifecycle/exit-codes.ts'
import { createContext, type CommonOptions, type Context } from './context.ts'
import { outputFormats } from './output.ts'

/** How a command hands its exit code to main.ts; nothing means 0. */
export type Outcome = ExitCode | void

/** A command of the program with the options that all of them take. `usage`: its name and arguments. */
export function addCommand(parent: Command, usage: string, summary: string): Command {
  return parent.command(usage).summary(summary).description(summary)
    .addOption(new Option('-o, --output <format>', 'form of what is printed').choices([...outputFormats]).default('table'))
    .option('-q, --quiet', 'print no notes beside the result')
    .option('--verbose', 'print what the Kafka client says, and stacks of errors')
}

/** A noun of `posthouse noun verb`. */
export function addNoun(parent: Command, name: string, summary: string): Command {
  return parent.command(name).summary(summary).description(summary)
}

/** Turns a command's work into commander's action. `work` gets the command's arguments and then its options, as commander passes them. */
export function act(work: (context: Context, ...args: never[]) => Promise<Outcome>): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as Command
    const outcome = await work(createContext(command.opts<CommonOptions>()), ...given.slice(0, -1) as never[])
    if (outcome !== undefined) rootOf(command).setOptionValue('exitCode', outcome)
  }
}

const rootOf = (command: Command): Command => (command.parent ? rootOf(command.parent) : command)

/** A whole number in decimal digits. */
export const wholeNumber = (from: number, to: number) => (text: string): number => {
  const value = Number(text)
  if (!/^\d{1,15}$/.test(text) || value < from || value > to) throw new InvalidArgumentError(`Give a whole number from ${from} to ${to}.`)
  return value
}

/** A duration such as `30s`, as ms. */
export const durationMs = (text: string): number => {
  try {
    return parseDurationMs(text)
  } catch {
    throw new InvalidArgumentError('Give a duration such as 500ms, 30s, 5m, 2h or 3d.')
  }
}

/** Node's timers hold no more than 2^31 - 1 ms, and fire at once for what is longer. */
const longestTimerMs = 24 * 86_400_000

/** A duration that is waited out, as ms. */
export const timerMs = (text: string): number => {
  const ms = durationMs(text)
  if (ms > longestTimerMs) throw new InvalidArgumentError('Give a duration of at most 24d.')
  return ms
}

/** Collects an option that may be given more than once. */
export const collect = (text: string, earlier: readonly string[] | undefined): readonly string[] => [...(earlier ?? []), text]

/** The same, where one mention may hold several, separated by commas. */
export const collectList = (text: string, earlier: readonly string[] | undefined): readonly string[] =>
  [...(earlier ?? []), ...text.split(',').map((part) => part.trim()).filter((part) => part !== '')]

/** A duration ago, or an ISO time with its zone, as epoch ms; null where it is neither. */
function timeOf(text: string): number | null {
  try {
    return Date.now() - parseDurationMs(text)
  } catch {
    const at = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:?\d{2})$/.test(text) ? Date.parse(text) : NaN
    return Number.isNaN(at) ? null : at
  }
}

const timeForms = 'a duration such as 2h, or a time with its zone: 2026-01-31T08:00:00Z'

/** Where reading begins: `earliest`, a duration ago, or an ISO time with its zone. */
export const startPosition = (text: string): 'earliest' | 'latest' | { readonly at: number } => {
  if (text === 'earliest' || text === 'latest') return text
  const at = timeOf(text)
  if (at === null) throw new InvalidArgumentError(`Give latest, earliest, ${timeForms}.`)
  return { at }
}

/** A point in time, as epoch ms. */
export const pointInTime = (text: string): number => {
  const at = timeOf(text)
  if (at === null) throw new InvalidArgumentError(`Give ${timeForms}.`)
  return at
}

/** An exact event type, `prefix.*` or `*`. */
export const eventTypePattern = (text: string): string => {
  const wrong = checkPattern(text)
  if (wrong !== null) throw new InvalidArgumentError(`${wrong}.`)
  return text
}
