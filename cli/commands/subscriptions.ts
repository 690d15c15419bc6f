import { Option, type Command } from 'commander'
import { subscriptionStates, type SubscriptionState } from '../../shared/domain/subscription.ts'
import { act, addCommand, addNoun } from '../command.ts'
import type { Context } from '../context.ts'
import { withKafka } from '../kafka-session.ts'
import { findSubscription, openSubscriptions } from '../subscription-session.ts'
import { printSubscription, printSubscriptions } from '../subscription-view.ts'
import { addApplyCommand } from './subscriptions-apply.ts'
import { addChangeCommands } from './subscriptions-change.ts'
import { addWriteCommands } from './subscriptions-write.ts'

type ListOptions = { readonly tenant?: string; readonly state?: SubscriptionState; readonly endpoint?: string }

export function addSubscriptionsCommands(program: Command): void {
  const subscriptions = addNoun(program, 'subscriptions', 'who is sent which events')
  addWriteCommands(subscriptions)
  addCommand(subscriptions, 'list', 'list subscriptions; of URLs only the host, as they may carry tokens')
    .option('--tenant <tenant>', 'only those of this tenant')
    .addOption(new Option('--state <state>', 'only those in this state').choices([...subscriptionStates]))
    .option('--endpoint <key>', 'only those of this endpoint')
    .action(act(list))
  addCommand(subscriptions, 'show <id>', 'show one subscription; never its secrets, which are printed once, when they are made')
    .option('--reveal-url', 'show the whole URL, which may carry a token')
    .action(act(show))
  addChangeCommands(subscriptions)
  addApplyCommand(subscriptions)
}

async function list(context: Context, { tenant, state, endpoint }: ListOptions): Promise<void> {
  await withKafka(context, async (kafka) => {
    const table = await openSubscriptions(context, kafka)
    const found = table.list()
      .filter((one) => (tenant === undefined || one.tenant === tenant) && (state === undefined || one.state === state) &&
        (endpoint === undefined || one.endpointKey === endpoint))
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    printSubscriptions(context.output, found)
    if (found.length === 0) context.output.note('There is no such subscription.')
    if (table.newerCount() > 0) {
      context.output.warn(`${table.newerCount()} subscriptions were written by a newer posthouse and are not shown: upgrade this one`)
    }
  })
}

async function show(context: Context, id: string, { revealUrl = false }: { readonly revealUrl?: boolean }): Promise<void> {
  await withKafka(context, async (kafka) => {
    const found = findSubscription(await openSubscriptions(context, kafka), id)
    printSubscription(context.output, found, kafka.config, revealUrl ? { url: found.url } : {})
  })
}
