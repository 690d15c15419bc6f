import type { Command } from 'commander'
import type { Attempt } from '../../shared/domain/delivery.ts'
import { matches } from '../../shared/domain/matching.ts'
import type { StartPosition } from '../../shared/kafka/start-position.ts'
import { lineOfAttempt, readAttempt, viewOfAttempt } from '../attempt-view.ts'
import { act, addCommand, addNoun, startPosition, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { withKafka } from '../kafka-session.ts'
import { tail } from '../tail.ts'
import { addDeliveriesLookCommands } from './deliveries-look.ts'

type TailOptions = {
  readonly from: StartPosition
  readonly count?: number
  readonly type?: string
  readonly tenant?: string
  readonly event?: string
  readonly subscription?: string
  readonly endpoint?: string
  readonly failed?: boolean
}

export function addDeliveriesCommands(program: Command): void {
  const deliveries = addNoun(program, 'deliveries', 'events on their way to subscriptions')
  addCommand(deliveries, 'tail', 'show every attempt and how it ended, until Ctrl-C')
    .option('--from <position>', 'begin at: latest, earliest, a duration ago such as 2h, or a time', startPosition, 'latest')
    .option('--count <n>', 'end after so many', wholeNumber(1, 1_000_000_000))
    .option('--type <pattern>', 'only of these event types: an exact one, prefix.* or *')
    .option('--tenant <tenant>', 'only those of this tenant')
    .option('--event <id>', 'only those of this event')
    .option('--subscription <id>', 'only those of this subscription')
    .option('--endpoint <key>', 'only those of this endpoint')
    .option('--failed', 'only those that did not succeed')
    .action(act(tailDeliveries))
  addDeliveriesLookCommands(deliveries)
}

async function tailDeliveries(context: Context, options: TailOptions): Promise<void> {
  const { output } = context
  await withKafka(context, async (kafka) => {
    await tail(context, kafka, {
      topics: [kafka.names.attempts], from: options.from, count: options.count,
      show({ value, partition, offset }) {
        const attempt = value && readAttempt(value)
        if (attempt === 'unreadable') {
          output.warn(`the record ${kafka.names.attempts}/${partition}/${offset} cannot be read: it may be of a newer posthouse`)
        }
        if (attempt === null || attempt === 'unreadable' || !isWanted(attempt, options)) return false
        output.row(viewOfAttempt(attempt), lineOfAttempt(attempt, Date.now()))
        return true
      },
    })
  })
}

function isWanted(attempt: Attempt, { type, tenant, event, subscription, endpoint, failed = false }: TailOptions): boolean {
  return (type === undefined || matches(type, attempt.eventType)) &&
    (tenant === undefined || attempt.tenant === tenant) &&
    (event === undefined || attempt.eventId === event) &&
    (subscription === undefined || attempt.subscriptionId === subscription) &&
    (endpoint === undefined || attempt.endpointKey === endpoint) &&
    (!failed || attempt.state !== 'success')
}
