import { InvalidArgumentError, type Command } from 'commander'
import type { Attempt } from '../../shared/domain/delivery.ts'
import { findDelivery, type DeliveryHistory } from '../../shared/lookup/delivery-history.ts'
import { listDeliveries, type DeliverySummary } from '../../shared/lookup/deliveries.ts'
import { createScanAccount } from '../../shared/lookup/scan-account.ts'
import { describeOutcome, viewOfAttempt } from '../attempt-view.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, collectList, pointInTime, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { given } from '../given.ts'
import { requireTopics, withKafka } from '../kafka-session.ts'
import type { Output } from '../output.ts'
import { endpointKeyOf, openScan, saySeen, scanning, timeText } from '../scan-session.ts'
import { printable } from '../table-text.ts'

type ListOptions = {
  readonly endpoint?: string
  readonly event?: string
  readonly subscription?: string
  readonly tenant?: string
  readonly type?: string
  readonly state?: readonly Attempt['state'][]
  readonly outcome?: string
  readonly since?: number
  readonly until?: number
  readonly limit: number
}

type ShowOptions = Pick<ListOptions, 'endpoint' | 'since' | 'until'>

const dayMs = 86_400_000
const states: readonly string[] = ['waiting', 'success', 'permanent_failure', 'dlq', 'cancelled', 'expired'] satisfies Attempt['state'][]

const listHelp = `
Read from the topic of attempts, which keeps 7 days: what waits for its first attempt is not in it. Partitions are read from their
ends, so the latest are found soon; what was read is said on standard error.`

const deliveryState = (text: string, earlier: readonly string[] | undefined): readonly string[] => {
  const all = collectList(text, earlier)
  const wrong = all.find((state) => !states.includes(state))
  if (wrong !== undefined) throw new InvalidArgumentError(`${wrong} is none of ${states.join(', ')}.`)
  return all
}

export function addDeliveriesLookCommands(deliveries: Command): void {
  addCommand(deliveries, 'list', 'list the deliveries that were attempted last, and how they stand')
    .option('--endpoint <key|url>', 'only those of this endpoint; reads its partition only')
    .option('--event <id>', 'only those of this event')
    .option('--subscription <id>', 'only those of this subscription')
    .option('--tenant <tenant>', 'only those of this tenant')
    .option('--type <pattern>', 'only of these event types: an exact one, prefix.* or *')
    .option('--state <states>', `only those in these states now: ${states.join(', ')}`, deliveryState)
    .option('--outcome <code>', 'only those whose last attempt returned this: a status such as 503, or an error such as connect_timeout')
    .option('--since <time>', 'only what was attempted since then: a duration ago such as 2h, or a time; 24h when left out', pointInTime)
    .option('--until <time>', 'only what was attempted before then', pointInTime)
    .option('--limit <n>', 'at most so many', wholeNumber(1, 10_000), 50)
    .addHelpText('after', listHelp)
    .action(act(list))
  addCommand(deliveries, 'show <id>', 'show the whole history of one delivery, each attempt with what it returned')
    .option('--endpoint <key|url>', 'the endpoint it went to; reads its partition only')
    .option('--since <time>', 'read no further back than this; all there is when left out', pointInTime)
    .option('--until <time>', 'only what was attempted before then', pointInTime)
    .action(act(show))
}

async function list(context: Context, options: ListOptions): Promise<void> {
  const { endpoint, event, subscription, tenant, type, state, outcome, since = Date.now() - dayMs, until, limit } = options
  const endpointKey = endpoint === undefined ? undefined : endpointKeyOf(endpoint)
  await withKafka(context, async (kafka) => {
    await requireTopics(kafka, [kafka.names.attempts])
    const account = createScanAccount()
    const found = await scanning(context, 'attempts', account, listDeliveries(openScan(kafka), kafka.names.attempts, {
      since, limit,
      ...given({ until, endpointKey, eventId: event, subscriptionId: subscription, tenant, eventType: type, states: state, outcome: outcome?.replace(/^http_(?=\d{3}$)/, '') }),
    }, account))
    printDeliveries(context.output, found)
    saySeen(context, account)
    if (found.length === limit) context.output.note(`There may be more: these are the latest ${limit} (--limit).`)
  })
}

function printDeliveries(output: Output, found: readonly DeliverySummary[]): void {
  const now = Date.now()
  output.rows(found.map(viewOf), [
    { title: 'LAST', text: ({ recordedAt }) => `${recordedAt.slice(0, 19)}Z` },
    { title: 'DELIVERY', text: ({ deliveryId }) => deliveryId },
    { title: 'EVENT', text: ({ eventId }) => eventId },
    { title: 'TYPE', text: ({ eventType }) => eventType },
    { title: 'ENDPOINT', text: ({ endpointKey }) => endpointKey },
    { title: 'ATTEMPTS', text: ({ attempt, replay }) => `${attempt}${replay > 0 ? ` of replay ${replay}` : ''}`, align: 'right' },
    { title: 'OUTCOME', text: ({ nextDueAt, ...view }) => describeOutcome({ ...view, nextDueAt: nextDueAt === null ? null : Date.parse(nextDueAt) }, now) },
  ])
}

const viewOf = (one: DeliverySummary) => ({ ...viewOfAttempt(one), recordedAt: timeText(one.recordedAt) })

async function show(context: Context, id: string, { endpoint, since, until }: ShowOptions): Promise<void> {
  const endpointKey = endpoint === undefined ? undefined : endpointKeyOf(endpoint)
  await withKafka(context, async (kafka) => {
    await requireTopics(kafka, [kafka.names.attempts])
    const account = createScanAccount()
    const history = await scanning(context, 'attempts', account, findDelivery(
      openScan(kafka), kafka.names.attempts, { deliveryId: id, ...given({ endpointKey, since, until }) }, account,
    ))
    saySeen(context, account)
    const last = history.attempts.at(-1)
    if (!last) {
      throw new CliError(
        'not_found', `nothing was found of delivery ${id} in ${kafka.names.attempts}`,
        'it was not attempted yet, or so long ago that the topic has let it go (7 d), or its id is another; see "posthouse deliveries list"',
      )
    }
    printHistory(context.output, history, last)
    if (!history.isWhole) context.output.warn('attempts before these are not in what was read')
  })
}

function printHistory(output: Output, { attempts, isWhole }: DeliveryHistory, last: DeliverySummary): void {
  const { deliveryId, eventId, eventType, tenant, subscriptionId, endpointKey, state, reason, replay, attempt, nextDueAt } = last
  const of = { deliveryId, eventId, eventType, tenant, subscriptionId, endpointKey, state, reason, replay, attempt }
  output.record({ ...of, nextDueAt: nextDueAt === null ? null : timeText(nextDueAt), isWhole, attempts: attempts.map(viewOf) }, [
    ['delivery', deliveryId],
    ['event', printable(eventId)],
    ['type', printable(eventType)],
    ...(tenant === null ? [] : [['tenant', printable(tenant)] as const]),
    ['subscription', subscriptionId],
    ['endpoint', endpointKey],
    ['state', describeOutcome(last, Date.now())],
    ['attempts', attempts.map(linesOf).join('\n')],
  ])
}

/** One attempt, or an end without one; what the endpoint answered below it. */
function linesOf(one: DeliverySummary): string {
  const { startedAt, attempt, replay, durationMs, failureClass, status, error, excerpt, endpointKey } = one
  const line = [
    `${timeText(startedAt).slice(0, 23)}Z`, `#${attempt}${replay > 0 ? ` of replay ${replay}` : ''}`, `${durationMs} ms`,
    describeOutcome({ ...one, nextDueAt: null }, 0), ...(failureClass === null ? [] : [failureClass]),
    ...(error === null || status === null || error === `http_${status}` ? [] : [error]), endpointKey,
  ].map(printable).join('  ')
  return excerpt === null || excerpt.trim() === '' ? line : `${line}\n${excerpt.trim().split('\n').map((text) => `  | ${printable(text)}`).join('\n')}`
}
