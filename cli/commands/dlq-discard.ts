import type { Command } from 'commander'
import { discardDeadLetters, planDiscard, type DiscardRequest } from '../../shared/dead-letters/discard.ts'
import { act, addCommand } from '../command.ts'
import { isConfirmed, type ConfirmOptions } from '../confirm.ts'
import type { Context } from '../context.ts'
import { concludeRun, printRun, sayRefusals } from '../dead-letter-run.ts'
import { chosenBy, openDeadLetters, takeTurnOrFail, withFilter, type FilterOptions } from '../dead-letter-session.ts'
import { withKafka } from '../kafka-session.ts'

type DiscardOptions = FilterOptions & ConfirmOptions & { readonly all?: boolean }

const help = `
They come off the list and are not sent. Kafka keeps them until it compacts the topic; keep what you may need with "posthouse dlq export".`

export function addDiscardCommand(dlq: Command): void {
  withFilter(addCommand(dlq, 'discard [ids...]', 'take dead letters off the list for good'))
    .option('--all', 'all of them')
    .option('--yes', 'do it; without it they are only counted')
    .option('--dry-run', 'count them and end with 0')
    .addHelpText('after', help)
    .action(act(discard))
}

async function discard(context: Context, ids: readonly string[], options: DiscardOptions): Promise<void> {
  const { output, signal } = context
  const filter = chosenBy(options, ids)
  await withKafka(context, async (kafka) => {
    const source = await openDeadLetters(kafka)
    let [done, total] = [0, 0]
    const request: DiscardRequest = { filter, signal, onProgress: (now, of) => { [done, total] = [now, of] } }
    const text = (): string => `reading dead letters: ${done} of ${total} records`
    if (!options.yes || options.dryRun) {
      const plan = await context.wait(text, planDiscard(source, request))
      const rows = [...plan.byReason].map(([reason, count]) => ({ reason, count })).sort((a, b) => b.count - a.count)
      if (output.format === 'table') {
        output.rows(rows, [{ title: 'TO DISCARD', text: ({ count }) => String(count), align: 'right' }, { title: 'REASON', text: ({ reason }) => reason }])
      } else {
        const { done: toDiscard, refused, refusedByReason, missing } = plan
        output.record({ toDiscard, refused, refusedByReason, missing, reasons: rows }, [])
      }
      sayRefusals(output, plan)
      if (plan.done > 0) isConfirmed(context, options)
      else output.warn('there is nothing to discard')
      return
    }
    const turn = await takeTurnOrFail(context, kafka)
    const { producer } = await context.wait('connecting', kafka.producer())
    const hide = output.progress(text)
    const report = await discardDeadLetters(source, { producer, turn }, request).finally(hide)
    printRun(context, 'discarded', report)
    concludeRun(context, kafka, report, 'discarded')
  })
}
