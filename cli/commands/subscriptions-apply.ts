import type { Command } from 'commander'
import type { SubscriptionWriter, Written } from '../../shared/subscriptions/write.ts'
import { CliError, unreachable } from '../cli-error.ts'
import { act, addCommand } from '../command.ts'
import { isConfirmed, type ConfirmOptions } from '../confirm.ts'
import type { Context } from '../context.ts'
import { readInput } from '../input.ts'
import { withKafka } from '../kafka-session.ts'
import type { Output } from '../output.ts'
import { openSubscriptions, openWriter, rulesOf, writeDeadlineMs } from '../subscription-session.ts'
import { hostOf } from '../../shared/subscriptions/view.ts'
import { diffSubscriptions, type Step } from '../subscriptions-diff.ts'
import { parseSubscriptionsFile } from '../subscriptions-file.ts'

type ApplyOptions = ConfirmOptions & { readonly file: string; readonly prune?: boolean }

const help = `
The file is JSON: {"subscriptions": [{"url": "https://...", "eventTypes": ["order.*"], ...}]}, or just the array. Further fields:
  tenant, state, description, signatureScheme, secret, headers {name: value},
  policy {strategy, schedule, base, max, maxAttempts, adaptive, jitter, timeout, statusClasses {"404": "permanent"}}, id
A secret or a header's value may be {"env": "NAME"}: it is taken from the environment. What a new subscription leaves out gets its
default; what an existing one leaves out stays as it is.
A subscription is known by its tenant and URL; give its id to change its URL, or where several share one.`

export function addApplyCommand(subscriptions: Command): void {
  addCommand(subscriptions, 'apply', 'make subscriptions as a file has them')
    .requiredOption('-f, --file <file>', 'the file; - is standard input')
    .option('--prune', 'delete the subscriptions that the file has not')
    .option('--yes', 'do it; without it the changes are only shown')
    .option('--dry-run', 'show the changes and end with 0')
    .addHelpText('after', help)
    .action(act(apply))
}

type Row = {
  readonly action: Step['action']
  readonly result: 'planned' | 'done' | 'conflict' | 'failed'
  readonly id: string | null
  readonly tenant: string | null
  readonly host: string
  readonly changes: readonly string[]
  /** Of a subscription that was just made, this once. */
  readonly secret?: string
}

/** So many writes at once: each takes a second, as its effect is waited for. */
const concurrency = 20

async function apply(context: Context, options: ApplyOptions): Promise<void> {
  const { output } = context
  const wanted = parseSubscriptionsFile((await readInput(options.file, context.signal)).toString(), options.file, process.env)
  await withKafka(context, async (kafka) => {
    const table = await openSubscriptions(context, kafka)
    const { steps, unchanged, problems } = diffSubscriptions(
      wanted, table.list(), { prune: options.prune ?? false, rules: rulesOf(kafka), now: Date.now() },
    )
    if (problems.length > 0) {
      throw new CliError(
        'usage', [`${options.file} cannot be applied, and nothing was changed`, ...problems.map((one) => `  ${one}`)].join('\n'),
      )
    }
    const planned = steps.map((step) => rowOf(step, 'planned'))
    if (!options.yes || options.dryRun || steps.length === 0) printRows(output, planned)
    output.note(`${steps.length} to change, ${unchanged} as wanted.`)
    if (steps.length === 0 || !isConfirmed(context, options)) return

    const writer = await openWriter(context, kafka, table)
    const rows: Row[] = []
    try {
      for (let from = 0; from < steps.length; from += concurrency) {
        const some = steps.slice(from, from + concurrency)
        const writing = Promise.allSettled(some.map((step) => carryOut(writer, step)))
        const results = await context.wait(`writing ${steps.length} subscriptions, ${from} done`, writing, {
          deadlineMs: writeDeadlineMs, onTimeout: () => unreachable(kafka.config.kafka.brokers),
        })
        rows.push(...some.map((step, index) => resultRow(step, results[index])))
      }
    } finally {
      // Also where it ends half-way: what was made is made, and its secrets are shown nowhere else.
      printRows(output, rows)
    }
    failUnlessDone(rows)
  })
}

function carryOut(writer: SubscriptionWriter, step: Step): Promise<Written> {
  if (step.action === 'create') return writer.create(step.wanted)
  const { id, offset } = step.present
  return step.action === 'update' ? writer.update(id, step.change, { ifVersion: offset }) : writer.delete(id, { ifVersion: offset })
}

function rowOf(step: Step, result: Row['result']): Row {
  const { tenant, url } = step.action === 'create' ? step.drafted : step.present
  const id = step.action === 'create' ? null : step.present.id
  return { action: step.action, result, id, tenant, host: hostOf(url), changes: step.changes }
}

function resultRow(step: Step, settled: PromiseSettledResult<Written> | undefined): Row {
  if (settled?.status !== 'fulfilled') return { ...rowOf(step, 'failed'), changes: [String(settled?.reason)] }
  const written = settled.value
  if (written.kind === 'invalid') return { ...rowOf(step, 'failed'), changes: written.problems }
  if (written.kind === 'newer') return { ...rowOf(step, 'failed'), changes: ['written by a newer posthouse'] }
  if (written.kind === 'deleted') return rowOf(step, 'done')
  if (written.kind !== 'written') return { ...rowOf(step, 'conflict'), changes: ['changed by someone else since the comparison'] }
  // One that the file brought along is known already.
  const isNew = step.action === 'create' && step.wanted.secret === undefined
  const secret = isNew ? { secret: written.subscription.secrets[0]?.secret ?? '' } : {}
  return { ...rowOf(step, 'done'), id: written.subscription.id, ...secret }
}

function failUnlessDone(rows: readonly Row[]): void {
  const undone = rows.filter(({ result }) => result !== 'done')
  if (undone.length === 0) return
  const isOnlyConflicts = undone.length === rows.length && undone.every(({ result }) => result === 'conflict')
  throw new CliError(isOnlyConflicts ? 'conflict' : undone.length === rows.length ? 'failed' : 'partial',
    `${undone.length} of ${rows.length} changes were not made`, 'run it again: it goes by what there is then')
}

function printRows(output: Output, rows: readonly Row[]): void {
  const hasSecrets = rows.some(({ secret }) => secret !== undefined)
  output.rows(rows, [
    { title: 'ACTION', text: ({ action }) => action },
    { title: 'RESULT', text: ({ result }) => result },
    { title: 'ID', text: ({ id }) => id ?? '(new)' },
    { title: 'TENANT', text: ({ tenant }) => tenant ?? '-' },
    { title: 'HOST', text: ({ host }) => host },
    { title: 'CHANGES', text: ({ changes }) => changes.join('; ') },
    ...(hasSecrets ? [{ title: 'SECRET (shown this once)', text: ({ secret }: Row) => secret ?? '' }] : []),
  ])
}
