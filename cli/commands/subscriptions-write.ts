import { Option, type Command } from 'commander'
import { noPolicy } from '../../shared/domain/policy.ts'
import { signatureSchemes, type CustomHeader, type SignatureScheme } from '../../shared/domain/subscription.ts'
import type { SubscriptionChange } from '../../shared/subscriptions/draft.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, collectList, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { readInput } from '../input.ts'
import { withKafka } from '../kafka-session.ts'
import { addPolicyOptions, policyFrom, withoutUndefined, type PolicyOptions } from '../policy-options.ts'
import { findSubscription, openSubscriptions, openWriter, settleWrite } from '../subscription-session.ts'
import { printSubscription } from '../subscription-view.ts'

type WriteOptions = PolicyOptions & {
  readonly url?: string
  readonly type?: readonly string[]
  readonly scheme?: SignatureScheme
  readonly header?: readonly CustomHeader[] | false
  readonly description?: string
}
type CreateOptions = WriteOptions & {
  readonly url: string
  readonly type: readonly string[]
  readonly tenant?: string
  readonly secretFile?: string
  readonly paused?: boolean
}
type UpdateOptions = WriteOptions & { readonly ifVersion?: number }

export function addWriteCommands(subscriptions: Command): void {
  const create = addCommand(subscriptions, 'create', 'make a subscription and print its signing secret, this once')
    .requiredOption('--url <url>', 'where to POST')
    .addOption(typeOption('event types it is sent: exact ones, prefix.* or *; separated by commas, or repeated').makeOptionMandatory())
    .option('--tenant <tenant>', 'whose subscription it is, where there are tenants; cannot be changed later')
    .option('--secret-file <file>', 'use the secret in this file (- is standard input) instead of a new one')
    .option('--paused', 'deliveries wait until it is resumed')
  addCommonOptions(create).action(act(createSubscription))

  const update = addCommand(subscriptions, 'update <id>', 'change what is given and keep the rest')
    .option('--url <url>', 'where to POST')
    .addOption(typeOption('event types it is sent from now on, in place of the present ones'))
    .option('--if-version <n>', 'only if its version is still this one; else exit code 5', wholeNumber(0, Number.MAX_SAFE_INTEGER))
  addCommonOptions(update)
    .option('--no-header', 'send no headers of its own any more')
    .action(act(updateSubscription))
}

const typeOption = (text: string): Option => new Option('--type <types>', text).argParser(collectList)

function addCommonOptions(command: Command): Command {
  command
    .addOption(new Option('--scheme <scheme>', 'how requests are signed (stripe when left out)').choices([...signatureSchemes]))
    .option('--header <name:value>', 'a header to send along; may be repeated; in place of the present ones', customHeader)
    .option('--description <text>', 'a note for people; empty takes it away')
  return addPolicyOptions(command)
}

function customHeader(text: string, earlier: readonly CustomHeader[] | boolean | undefined): readonly CustomHeader[] {
  const colon = text.indexOf(':')
  // Not as an invalid argument: commander repeats those, and this one may be a token.
  if (colon < 1) throw new CliError('usage', '--header is not a name and a value', 'give both, such as "Authorization: Bearer abc"')
  return [
    ...(Array.isArray(earlier) ? earlier as readonly CustomHeader[] : []),
    { name: text.slice(0, colon).trim(), value: text.slice(colon + 1).trim() },
  ]
}

function changeOf(options: WriteOptions): SubscriptionChange {
  const { url, type, scheme, header, description } = options
  return withoutUndefined({
    url, eventTypes: type, signatureScheme: scheme,
    headers: header === false ? [] : Array.isArray(header) ? header as readonly CustomHeader[] : undefined,
    description: description === '' ? null : description,
  })
}

async function createSubscription(context: Context, options: CreateOptions): Promise<void> {
  const policy = policyFrom(options, noPolicy)
  const secret = options.secretFile === undefined ? undefined : await readSecret(options.secretFile, context.signal)
  const wanted = {
    ...changeOf(options),
    url: options.url,
    eventTypes: options.type,
    ...withoutUndefined({ tenant: options.tenant, policy, secret }),
    ...(options.paused ? { state: 'paused' as const } : {}),
  }
  await withKafka(context, async (kafka) => {
    const writer = await openWriter(context, kafka, await openSubscriptions(context, kafka))
    const written = await settleWrite(context, kafka, writer.create(wanted))
    if (written.kind !== 'written') return
    const { subscription } = written
    // A secret that was brought along is known already.
    const made = secret === undefined ? { secret: subscription.secrets[0]?.secret ?? '' } : {}
    printSubscription(context.output, subscription, kafka.config, made)
    if (secret === undefined) context.output.note('Keep the secret now: it is not shown again.')
  })
}

async function updateSubscription(context: Context, id: string, options: UpdateOptions): Promise<void> {
  await withKafka(context, async (kafka) => {
    const table = await openSubscriptions(context, kafka)
    const present = findSubscription(table, id)
    const policy = policyFrom(options, present.policy)
    const change: SubscriptionChange = { ...changeOf(options), ...(policy === undefined ? {} : { policy }) }
    if (Object.keys(change).length === 0) {
      throw new CliError(
        'usage', 'there is nothing to change', 'see "posthouse subscriptions update --help" for what can be',
      )
    }
    const writer = await openWriter(context, kafka, table)
    // The policy is changed field by field, so it must be the one that was read.
    const written = await settleWrite(context, kafka, writer.update(id, change, { ifVersion: options.ifVersion ?? present.offset }))
    if (written.kind === 'written') printSubscription(context.output, written.subscription, kafka.config)
  })
}

/** One line; the line's end is no part of it. */
const readSecret = async (file: string, signal: AbortSignal): Promise<string> => (await readInput(file, signal)).toString().replace(/\r?\n$/, '')
