import { Option, type Command } from 'commander'
import { readGoneEndpoints } from '../shared/dead-letters/gone.ts'
import { isEverything, type DeadLetterFilter } from '../shared/dead-letters/filter.ts'
import { takeReplayTurn } from '../shared/dead-letters/replay-turn.ts'
import type { ReplaySource } from '../shared/dead-letters/replay.ts'
import type { DeadLetterSource } from '../shared/dead-letters/scan.ts'
import { deadLetterReasons } from '../shared/domain/delivery.ts'
import type { Turn } from '../shared/kafka/turn.ts'
import { CliError, unreachable } from './cli-error.ts'
import { eventTypePattern, pointInTime, wholeNumber } from './command.ts'
import type { Context } from './context.ts'
import { given } from './given.ts'
import { requireTopics, type KafkaSession } from './kafka-session.ts'
import { endpointKeyOf, openScan } from './scan-session.ts'
import { openSubscriptions } from './subscription-session.ts'

export type FilterOptions = {
  readonly endpoint?: string
  readonly subscription?: string
  readonly tenant?: string
  readonly event?: string
  readonly type?: string
  readonly reason?: string
  readonly status?: number
  readonly error?: string
  readonly since?: number
  readonly until?: number
}

/** The options by which dead letters are chosen. */
export function withFilter(command: Command): Command {
  return command
    .option('--endpoint <key|url>', 'only those of this endpoint')
    .option('--subscription <id>', 'only those of this subscription')
    .option('--tenant <tenant>', 'only those of this tenant')
    .option('--event <id>', 'only those of this event')
    .option('--type <pattern>', 'only of these event types: an exact one, prefix.* or *', eventTypePattern)
    .addOption(new Option('--reason <reason>', 'only those that died of this').choices([...deadLetterReasons]))
    .option('--status <status>', 'only those whose last attempt was answered with this HTTP status', wholeNumber(0, 999_999))
    .option('--error <code>', 'only those whose last attempt failed with this: connect_refused, http_503')
    .option('--since <time>', 'only those that died since then: a duration ago such as 2h, or a time', pointInTime)
    .option('--until <time>', 'only those that died before then', pointInTime)
}

/** @throws CliError `usage` where nothing could pass */
export function filterOf(options: FilterOptions, ids: readonly string[] = []): DeadLetterFilter {
  const { endpoint, subscription, tenant, event, type, reason, status, error, since, until } = options
  if (since !== undefined && until !== undefined && until <= since) throw new CliError('usage', '--until is not after --since: nothing died in that time')
  return given({
    ids: ids.length === 0 ? undefined : ids, endpointKey: endpoint === undefined ? undefined : endpointKeyOf(endpoint), subscriptionId: subscription,
    tenant, eventId: event, eventType: type, reason, status, error, since, until,
  })
}

/** For what changes many: everything must be asked for, so that a filter that was forgotten does not mean all. @throws CliError `usage` */
export function chosenBy(options: FilterOptions & { readonly all?: boolean }, ids: readonly string[]): DeadLetterFilter {
  const filter = filterOf(options, ids)
  if (options.all && !isEverything(filter)) throw new CliError('usage', '--all stands alone: give it, or ids and filters')
  if (!options.all && isEverything(filter)) {
    throw new CliError('usage', 'it is not said which dead letters', 'give ids, filters such as --endpoint and --since, or --all; "posthouse dlq list" shows what there is')
  }
  return filter
}

export async function openDeadLetters(kafka: KafkaSession): Promise<DeadLetterSource> {
  await requireTopics(kafka, [kafka.names.dlq])
  return { scanner: openScan(kafka), topic: kafka.names.dlq }
}

/** With what decides whether a dead letter can be replayed. */
export async function openReplaySource(context: Context, kafka: KafkaSession): Promise<ReplaySource> {
  const { names } = kafka
  await requireTopics(kafka, [names.dlq, names.deliveries, names.subscriptions, names.endpointHealth])
  const subscriptions = await openSubscriptions(context, kafka)
  const scanner = openScan(kafka)
  const gone = await context.wait('reading endpoint health', readGoneEndpoints(scanner, names.endpointHealth))
  return { scanner, topic: names.dlq, subscriptions, gone }
}

/** A killed one keeps its turn for 10 s, and the group's own pauses come to some seconds. */
const turnDeadlineMs = 45_000

/** @throws CliError `conflict` when somebody has it */
export async function takeTurnOrFail(context: Context, kafka: KafkaSession): Promise<Turn> {
  const { connection, names, config } = kafka
  const turn = await context.wait('waiting for the turn, which who was killed keeps for 10 s', takeReplayTurn({
    connection, groupPrefix: config.groupPrefix, topic: names.dlq,
  }), { deadlineMs: turnDeadlineMs, onTimeout: () => unreachable(config.kafka.brokers) })
  if (turn === null) {
    throw new CliError(
      'conflict', 'dead letters are being replayed or discarded by somebody else: one at a time',
      `wait until that has ended; it is a member of the group ${config.groupPrefix}.replay`,
    )
  }
  kafka.add('the turn', turn.end)
  return turn
}
