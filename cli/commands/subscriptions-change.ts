import type { Command } from 'commander'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { judgeStateChange, stateVerbs, type StateVerb } from '../../shared/subscriptions/state-change.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, wholeNumber } from '../command.ts'
import { isConfirmed, type ConfirmOptions } from '../confirm.ts'
import type { Context } from '../context.ts'
import { withKafka } from '../kafka-session.ts'
import { findSubscription, openSubscriptions, openWriter, settleWrite } from '../subscription-session.ts'
import { printChanged } from '../subscription-view.ts'

const summaries: Readonly<Record<StateVerb, string>> = {
  pause: 'let its deliveries wait from now on',
  resume: 'send what waits, within 30 minutes, and what comes',
  disable: 'send it nothing more: what is under way becomes dead letters, new events pass it by',
  enable: 'send it events again, also when its endpoint had answered 410 Gone',
}

type VersionOptions = { readonly ifVersion?: number }

export function addChangeCommands(subscriptions: Command): void {
  for (const verb of stateVerbs) {
    addCommand(subscriptions, `${verb} <id>`, summaries[verb])
      .option('--if-version <n>', 'only if its version is still this one; else exit code 5', wholeNumber(0, Number.MAX_SAFE_INTEGER))
      .action(act((context, id: string, options: VersionOptions) => changeState(context, id, verb, options)))
  }
  addCommand(subscriptions, 'delete <id>', 'delete a subscription: what is under way for it is cancelled')
    .option('--if-version <n>', 'only if its version is still this one; else exit code 5', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .option('--yes', 'do it; without it the subscription is only shown')
    .option('--dry-run', 'show the subscription and end with 0')
    .action(act(deleteSubscription))
}

async function changeState(context: Context, id: string, verb: StateVerb, { ifVersion }: VersionOptions): Promise<void> {
  await withKafka(context, async (kafka) => {
    const table = await openSubscriptions(context, kafka)
    const present = findSubscription(table, id)
    checkVersion(present, ifVersion)
    const judged = judgeStateChange(present, verb)
    if (judged.kind === 'refused') {
      throw new CliError(
        'conflict', `subscription ${id} is ${present.state} and cannot be ${verb}d`,
        verb === 'resume' ? 'use "posthouse subscriptions enable"' : 'enable it first',
      )
    }
    if (judged.kind === 'nothing') {
      context.output.note(`It is ${present.state} already.`)
      return printChanged(context.output, present)
    }
    const writer = await openWriter(context, kafka, table)
    const written = await settleWrite(context, kafka, writer.update(id, { state: judged.state }, { ifVersion: present.offset }))
    if (written.kind === 'written') printChanged(context.output, written.subscription)
  })
}

async function deleteSubscription(context: Context, id: string, options: ConfirmOptions & VersionOptions): Promise<void> {
  await withKafka(context, async (kafka) => {
    const table = await openSubscriptions(context, kafka)
    const present = findSubscription(table, id)
    checkVersion(present, options.ifVersion)
    if (!options.yes || options.dryRun) printChanged(context.output, present)
    if (!isConfirmed(context, options)) return
    const writer = await openWriter(context, kafka, table)
    await settleWrite(context, kafka, writer.delete(id, { ifVersion: present.offset }))
    context.output.record({ id, state: 'deleted' }, [['id', id], ['state', 'deleted']])
  })
}

function checkVersion({ id, offset }: StoredSubscription, ifVersion: number | undefined): void {
  if (ifVersion === undefined || ifVersion === offset) return
  throw new CliError(
    'conflict', `subscription ${id} has version ${offset}, not ${ifVersion}: someone else has changed it`,
    `look at it with "posthouse subscriptions show ${id}"`,
  )
}
