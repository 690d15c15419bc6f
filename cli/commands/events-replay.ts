import { InvalidArgumentError, type Command } from 'commander'
import { checkPattern } from '../../shared/domain/matching.ts'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { readKnownDeliveries, type KnownDeliveries } from '../../shared/lookup/delivered.ts'
import { isGoneFor, readEndpoints } from '../../shared/lookup/endpoints.ts'
import { createReplayCounts, replayEvents, replayNumber, type EventsReplay, type ReplayCounts } from '../../shared/lookup/events-replay.ts'
import { createSending, ReplayStalledError, type Sending } from '../../shared/lookup/replay-sending.ts'
import { createScanAccount, type ScanAccount } from '../../shared/lookup/scan-account.ts'
import type { Scanner } from '../../shared/kafka/scanner.ts'
import { CliError, toCliError } from '../cli-error.ts'
import { act, addCommand, pointInTime, wholeNumber } from '../command.ts'
import { isConfirmed, type ConfirmOptions } from '../confirm.ts'
import type { Context } from '../context.ts'
import { given } from '../given.ts'
import { eventsTopicHint, requireTopics, withKafka, type KafkaSession } from '../kafka-session.ts'
import { openScan, saySeen, scanning, timeText } from '../scan-session.ts'
import { findSubscription, openSubscriptions } from '../subscription-session.ts'
import { hostOf } from '../../shared/subscriptions/view.ts'

type ReplayOptions = ConfirmOptions & {
  readonly subscription: string
  readonly since: number
  readonly until?: number
  readonly type?: string
  readonly undelivered?: boolean
  readonly rate?: number
}

const help = `
For "I subscribed late" and "we lost yesterday": the events topics are read again by the time of their records, up to where they end
when the command begins, and what the subscription wants is sent to it, with the delivery ids and bytes it had or would have had, as a
replay (X-Webhook-Replay) numbered by the second the command began in. It is sent whether or not it was delivered before: receivers
tell by the delivery id.

With --undelivered what has a success in the topic of attempts is left out. That topic keeps 7 days, so what was delivered before counts
as undelivered; and what is still under way is sent as well, so give --until to leave out what has just come.

The configuration of the router (POSTHOUSE_EVENTS_TOPICS, POSTHOUSE_EVENT_*) must be set here too. Exit code 6 when some were not sent;
run it again with --undelivered, once what was sent has had its time.`

/** Success may be recorded a little before the event, by the clocks of brokers and producers. */
const clockMarginMs = 3_600_000

const pattern = (text: string): string => {
  const wrong = checkPattern(text)
  if (wrong !== null) throw new InvalidArgumentError(`${wrong}.`)
  return text
}

export function addReplayCommand(events: Command): void {
  addCommand(events, 'replay', 'send the events of a time to one subscription again, or for the first time')
    .requiredOption('--subscription <id>', 'to which; active or paused')
    .requiredOption('--since <time>', 'events since then: a duration ago such as 2h, or a time', pointInTime)
    .option('--until <time>', 'events before then', pointInTime)
    .option('--type <pattern>', 'only these of what it wants: an exact type, prefix.* or *', pattern)
    .option('--undelivered', 'only what has no success among the attempts of the last 7 days')
    .option('--rate <n>', 'at most so many a second', wholeNumber(1, 1_000_000))
    .option('--yes', 'do it; without it what would be sent is only counted')
    .option('--dry-run', 'count what would be sent and end with 0')
    .addHelpText('after', help)
    .action(act(replay))
}

async function replay(context: Context, options: ReplayOptions): Promise<void> {
  const startedAt = Date.now()
  const { since, until, type, undelivered = false, yes = false, dryRun = false } = options
  if (until !== undefined && until <= since) throw new CliError('usage', '--until is not after --since: no event is of that time')
  await withKafka(context, async (kafka) => {
    const { names, config: { events } } = kafka
    await requireTopics(kafka, events.topics, eventsTopicHint)
    await requireTopics(kafka, [names.deliveries, names.attempts, names.endpointHealth])
    const subscription = findSubscription(await openSubscriptions(context, kafka), options.subscription)
    const scanner = openScan(kafka)
    await refuseUnlessSent(context, kafka, scanner, subscription)
    const known = undelivered ? await readKnown(context, kafka, scanner, subscription.id, since) : null
    const work: EventsReplay = {
      subscription, since, known, replay: replayNumber(startedAt), topics: events.topics, ...given({ until, eventType: type }),
      door: { idField: events.idField, tenantField: events.tenantField, type: events.type },
    }
    const isReal = yes && !dryRun
    const sending = isReal ? await openSending(context, kafka, subscription, options.rate ?? null) : null
    const [counts, account] = [createReplayCounts(), createScanAccount()]
    const failure = await run(context, kafka, scanner, work, sending, counts, account)
    print(context, work, counts, sending)
    saySeen(context, account)
    if (failure !== null) throw failure
    if (!isReal && counts.wanted > counts.delivered) isConfirmed(context, options)
    failIfPartial(sending)
  })
}

/** What is sent to a disabled or gone one would only become dead letters. @throws CliError `conflict` */
async function refuseUnlessSent(context: Context, { names }: KafkaSession, scanner: Scanner, subscription: StoredSubscription): Promise<void> {
  const { id, endpointKey, state } = subscription
  const hint = `enable it with "posthouse subscriptions enable ${id}" first`
  if (state === 'disabled') throw new CliError('conflict', `subscription ${id} is disabled: nothing is sent to it`, hint)
  const account = createScanAccount()
  const health = (await scanning(context, 'endpoint health', account, readEndpoints(scanner, names.endpointHealth, { now: Date.now(), endpointKey }, account))).get(endpointKey)
  if (health && isGoneFor(health, subscription)) {
    throw new CliError('conflict', `the endpoint of subscription ${id} has answered 410 Gone: nothing is sent to it`, hint)
  }
  if (state === 'paused') context.output.warn(`subscription ${id} is paused: what is sent waits until it is resumed`)
}

async function readKnown(context: Context, { names }: KafkaSession, scanner: Scanner, subscriptionId: string, since: number): Promise<KnownDeliveries> {
  const account = createScanAccount()
  const known = await scanning(context, 'attempts', account, readKnownDeliveries(
    scanner, names.attempts, { subscriptionId, since: Math.max(0, since - clockMarginMs) }, account,
  ))
  saySeen(context, account)
  if (Date.now() - since > attemptsKeptMs) {
    context.output.warn('attempts are kept for 7 days: what was delivered before counts as undelivered')
  }
  return known
}

const attemptsKeptMs = 7 * 86_400_000

async function openSending(context: Context, kafka: KafkaSession, { endpointKey }: StoredSubscription, ratePerSecond: number | null): Promise<Sending> {
  const { producer, brokerTime } = await context.wait('connecting', kafka.producer())
  return createSending({ producer, brokerTime, topic: kafka.names.deliveries, endpointKey, ratePerSecond, signal: context.signal })
}

/** Not cut short by an interrupt, which ends the work itself: what was sent is to be told. Returns what went wrong. */
async function run(
  context: Context, kafka: KafkaSession, scanner: Scanner, work: EventsReplay, sending: Sending | null, counts: ReplayCounts, account: ScanAccount,
): Promise<CliError | null> {
  const { signal, output } = context
  const begunAt = performance.now()
  const hide = output.progress(() => `read ${account.records} of ${account.wanted} records, ${counts.wanted - counts.delivered} to be sent${sending === null ? '' : `, ${sending.sent()} sent`}`)
  try {
    await replayEvents(scanner, work, sending, { counts, account, signal })
    return signal.aborted ? signal.reason as CliError : null
  } catch (error) {
    if (signal.aborted) return signal.reason as CliError
    if (error instanceof ReplayStalledError) return new CliError('unreachable', error.message, 'run it again with --undelivered once Kafka answers', { cause: error })
    return toCliError(error, kafka.config.kafka.brokers)
  } finally {
    hide()
    if (performance.now() - begunAt > 2_000) output.note(`Took ${Math.round((performance.now() - begunAt) / 1000)} s.`)
  }
}

function print({ output }: Context, work: EventsReplay, counts: ReplayCounts, sending: Sending | null): void {
  const { subscription, replay: number, since, until, eventType, known } = work
  const refused = Object.fromEntries([...counts.refused].sort(([a], [b]) => (a < b ? -1 : 1)))
  const refusedCount = [...counts.refused.values()].reduce((sum, count) => sum + count, 0)
  const toSend = counts.wanted - counts.delivered
  output.record({
    subscriptionId: subscription.id, endpointKey: subscription.endpointKey, host: hostOf(subscription.url), replay: number,
    since: timeText(since), until: until === undefined ? null : timeText(until), eventType: eventType ?? null,
    wanted: counts.wanted, alreadyDelivered: known === null ? null : counts.delivered, underWay: known === null ? null : counts.waiting,
    toSend, sent: sending?.sent() ?? null, failed: sending?.failed() ?? null, refused,
  }, [
    ['subscription', subscription.id],
    ['endpoint', `${subscription.endpointKey}  ${hostOf(subscription.url)}`],
    ['replay', String(number)],
    ['events', `since ${timeText(since)}${until === undefined ? '' : `, before ${timeText(until)}`}${eventType === undefined ? '' : `, of type ${eventType}`}`],
    ['wanted', String(counts.wanted)],
    ...(known === null ? [] : [
      ['delivered', `${counts.delivered}, left out`] as const,
      ['under way', `${counts.waiting}, waiting for a retry, and sent as well`] as const,
    ]),
    ...(sending === null
      ? [['to be sent', String(toSend)] as const]
      : [['sent', String(sending.sent())] as const, ['failed', String(sending.failed())] as const]),
    ['no events', refusedCount === 0 ? '0' : `${refusedCount}: ${Object.entries(refused).map(([reason, count]) => `${count} ${reason}`).join(', ')}`],
  ])
}

/** @throws CliError `partial` */
function failIfPartial(sending: Sending | null): void {
  if (sending === null || sending.failed() === 0) return
  const { failed, sent, firstFailure } = sending
  throw new CliError(
    'partial', `${failed()} of ${failed() + sent()} deliveries were not sent; the first: ${firstFailure()?.message ?? ''}`,
    'run it again with --undelivered, once what was sent has had its time',
  )
}
