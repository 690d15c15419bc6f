import type { RunReport } from '../shared/dead-letters/report.ts'
import { CliError } from './cli-error.ts'
import type { Context } from './context.ts'
import type { KafkaSession } from './kafka-session.ts'
import type { Output } from './output.ts'

const fewEnough = 5

/** What a run over dead letters came to, and why some of them stayed. */
export function printRun({ output }: Context, verb: 'replayed' | 'discarded', report: RunReport): void {
  const { end, done, leftovers, refused, refusedByReason, failed, refusals, failures, missing } = report
  output.record({ [verb]: done, leftovers, refused, refusedByReason, failed, refusals, failures, missing, end }, [
    [verb, String(done)],
    ...(leftovers === 0 ? [] : [['cleared', `${leftovers} that were replayed before`] as const]),
    ['refused', refused === 0 ? '0' : `${refused}: ${Object.entries(refusedByReason).map(([reason, count]) => `${count} ${reason}`).join(', ')}`],
    ['failed', String(failed)],
  ])
  sayRefusals(output, report)
  for (const { key, message } of failures.slice(0, fewEnough)) output.warn(`${key} was not ${verb}: ${message}`)
}

/** The first few, and ids of which nothing is there. */
export function sayRefusals(output: Output, { refusals, refused, missing }: RunReport): void {
  for (const { key, message } of refusals.slice(0, fewEnough)) output.warn(`${key} is refused: ${message}`)
  if (refused > fewEnough) output.warn(`${refused - fewEnough} more are refused`)
  for (const id of missing) output.warn(`there is no dead letter ${id}`)
}

/** @throws CliError for all that is no whole success */
export function concludeRun({ signal }: Context, { config }: KafkaSession, report: RunReport, verb: 'replayed' | 'discarded'): void {
  const { end, done, leftovers, refused, failed, missing } = report
  const again = 'run the same command again: it goes on where this one ended'
  if (end === 'interrupted') throw signal.reason as CliError
  if (end === 'turn_lost') throw new CliError('failed', `stopped after ${done}: this process stood still for so long that somebody else may have had the turn`, again)
  if (end === 'unanswered') {
    throw new CliError('unreachable', `stopped after ${done}: Kafka at ${config.kafka.brokers.join(', ')} acknowledged nothing for a minute`, again)
  }
  const notDone = refused + failed + missing.length
  if (notDone === 0) return
  const message = `${notDone} of ${notDone + done + leftovers} dead letters were not ${verb}`
  if (done + leftovers > 0) throw new CliError('partial', message, 'why is said above')
  throw new CliError(failed > 0 ? 'failed' : refused > 0 ? 'conflict' : 'not_found', message, 'why is said above')
}
