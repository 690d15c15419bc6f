import type { Command } from 'commander'
import { planReplay, replayDeadLetters, type ReplayPlan, type ReplayRequest } from '../../shared/dead-letters/replay.ts'
import { hostOf } from '../../shared/subscriptions/view.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, wholeNumber } from '../command.ts'
import { isConfirmed, type ConfirmOptions } from '../confirm.ts'
import type { Context } from '../context.ts'
import { concludeRun, printRun, sayRefusals } from '../dead-letter-run.ts'
import { chosenBy, openReplaySource, takeTurnOrFail, withFilter, type FilterOptions } from '../dead-letter-session.ts'
import { withKafka } from '../kafka-session.ts'

type ReplayOptions = FilterOptions & ConfirmOptions & {
  readonly all?: boolean
  readonly force?: boolean
  readonly rate?: number
}

const help = `
Each is sent again with the same delivery id and the same bytes, signed anew, its attempts counted from 1, under the next replay number
(X-Webhook-Replay), to the URL that its subscription has now; it may wait for 14 days again. It comes off the list once Kafka has it. One
that fails again is a new dead letter. Killed and run again, the same command repeats at most 500 of them, with the same ids and numbers.

An id is a key (the delivery id and the number of the replay that failed), or a delivery id. Ids are replayed at once; all else is shown
first, and done with --yes. What would only be cancelled or die again at once is refused and stays: of a subscription that was deleted or
is disabled, or whose endpoint has answered 410 and was not written again since. --force sends what was replayed or discarded before
once more, if Kafka still has it, as a replay numbered by the present second.

One process replays or discards at a time. Exit code 6 when some were refused or not written, 5 when somebody else has the turn.`

export function addReplayCommand(dlq: Command): void {
  withFilter(addCommand(dlq, 'replay [ids...]', 'send dead letters again'))
    .option('--all', 'all of them')
    .option('--rate <n>', 'at most so many a second', wholeNumber(1, 1_000_000))
    .option('--force', 'also what was replayed or discarded before; needs ids')
    .option('--yes', 'do it; without it what would be sent is only counted, unless ids are given')
    .option('--dry-run', 'count what would be sent and end with 0')
    .addHelpText('after', help)
    .action(act(replay))
}

async function replay(context: Context, ids: readonly string[], options: ReplayOptions): Promise<void> {
  const { force = false, yes = false, dryRun = false, rate = null } = options
  if (force && ids.length === 0) throw new CliError('usage', '--force needs ids: what was delivered must not be sent again by the way')
  const filter = chosenBy(options, ids)
  const forcedReplay = force ? Math.floor(Date.now() / 1000) : null
  await withKafka(context, async (kafka) => {
    const source = await openReplaySource(context, kafka)
    const progress = { phase: 'indexing', done: 0, total: 0, written: 0 }
    const request: ReplayRequest = { filter, forcedReplay, signal: context.signal, onProgress: (now) => Object.assign(progress, now) }
    const text = (): string => `${progress.phase}: ${progress.done} of ${progress.total} records${progress.written === 0 ? '' : `, ${progress.written} sent`}`
    if (dryRun || (!yes && ids.length === 0)) {
      const plan = await context.wait(text, planReplay(source, request))
      printPlan(context, plan)
      if (plan.done + plan.leftovers > 0) isConfirmed(context, options)
      return
    }
    const turn = await takeTurnOrFail(context, kafka)
    const { producer, brokerTime } = await context.wait('connecting', kafka.producer())
    const hide = context.output.progress(text)
    // Not cut short by an interrupt: it ends the run between two batches, and what was sent is told.
    const report = await replayDeadLetters(source, { producer, brokerTime, turn, deliveriesTopic: kafka.names.deliveries, ratePerSecond: rate }, request)
      .finally(hide)
    printRun(context, 'replayed', report)
    concludeRun(context, kafka, report, 'replayed')
  })
}

function printPlan({ output }: Context, plan: ReplayPlan): void {
  const rows = [...plan.bySubscription].map(([subscriptionId, { endpointKey, url, count }]) => ({ subscriptionId, endpointKey, host: hostOf(url), count }))
    .sort((a, b) => b.count - a.count || (a.subscriptionId < b.subscriptionId ? -1 : 1))
  if (output.format === 'table') {
    output.rows(rows, [
      { title: 'TO REPLAY', text: ({ count }) => String(count), align: 'right' },
      { title: 'SUBSCRIPTION', text: ({ subscriptionId }) => subscriptionId },
      { title: 'ENDPOINT', text: ({ endpointKey, host }) => `${endpointKey} ${host}` },
    ])
  } else {
    const { done: toReplay, leftovers, refused, refusedByReason, missing } = plan
    output.record({ toReplay, leftovers, refused, refusedByReason, missing, subscriptions: rows }, [])
  }
  if (plan.done + plan.leftovers === 0) output.warn('there is nothing to replay')
  else if (output.format === 'table') output.warn(`${plan.done} would be replayed${plan.leftovers === 0 ? '' : `, and ${plan.leftovers} cleared that were replayed before`}`)
  sayRefusals(output, plan)
}
