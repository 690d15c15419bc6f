import { Option, type Command } from 'commander'
import { healthBands, type HealthBand } from '../../shared/domain/health.ts'
import { listRetryTopics } from '../../shared/kafka/topics.ts'
import type { Scanner } from '../../shared/kafka/scanner.ts'
import { readEndpoints } from '../../shared/lookup/endpoints.ts'
import { readLastAttempts } from '../../shared/lookup/last-attempts.ts'
import { createScanAccount } from '../../shared/lookup/scan-account.ts'
import { countWaiting, type Waiting, type WaitingPlace } from '../../shared/lookup/waiting.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, addNoun, pointInTime, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { printEndpoint, printEndpoints } from '../endpoint-view.ts'
import { given } from '../given.ts'
import { requireTopics, withKafka, type KafkaSession } from '../kafka-session.ts'
import { endpointKeyOf, openScan, saySeen, scanning } from '../scan-session.ts'
import { openSubscriptions } from '../subscription-session.ts'

type ListOptions = { readonly band?: HealthBand; readonly waiting?: boolean; readonly limit: number }
type ShowOptions = { readonly since?: number; readonly attempts: number }

const dayMs = 86_400_000

const help = `
The score is the share of the last 100 attempts that succeeded, each weighed by its age: it falls while nothing is sent. The band goes
by the same without time. An endpoint's record is written every 10 s at most, so the last seconds may be missing, and it is kept for
30 days after the last attempt.`

export function addEndpointsCommands(program: Command): void {
  const endpoints = addNoun(program, 'endpoints', 'the URLs that deliveries go to, and how they do')
  addCommand(endpoints, 'list', 'list endpoints, the worst first')
    .addOption(new Option('--band <band>', 'only those in this health band').choices([...healthBands]))
    .option('--waiting', 'also count what waits for each: reads all that waits, up to 200,000 records or 256 MiB')
    .option('--limit <n>', 'at most so many', wholeNumber(1, 100_000), 100)
    .addHelpText('after', help)
    .action(act(list))
  addCommand(endpoints, 'show <key|url>', 'show one endpoint: health, last error, throttle, subscriptions, what waits, last attempts')
    .option('--since <time>', 'last attempts since then: a duration ago such as 2h, or a time; 24h when left out', pointInTime)
    .option('--attempts <n>', 'at most so many of them', wholeNumber(0, 1_000), 10)
    .addHelpText('after', help)
    .action(act(show))
}

async function list(context: Context, { band, waiting = false, limit }: ListOptions): Promise<void> {
  await withKafka(context, async (kafka) => {
    await requireTopics(kafka, [kafka.names.endpointHealth])
    const [scanner, account] = [openScan(kafka), createScanAccount()]
    const table = await openSubscriptions(context, kafka)
    const states = await scanning(context, 'endpoint health', account, readEndpoints(scanner, kafka.names.endpointHealth, { now: Date.now() }, account))
    const counts = waiting ? await waitingFor(context, kafka, scanner, undefined) : null
    const byKey = Map.groupBy(table.list(), (one) => one.endpointKey)
    const found = [...states.values()]
      .filter((state) => band === undefined || state.band === band)
      .sort((a, b) => healthBands.indexOf(b.band) - healthBands.indexOf(a.band) || a.bandScore - b.bandScore || (a.endpointKey < b.endpointKey ? -1 : 1))
    const withoutRecord = band === undefined ? [...counts?.keys() ?? []].filter((key) => !states.has(key)) : []
    const keys = [...found.map((state) => state.endpointKey), ...withoutRecord]
    printEndpoints(context.output, keys.slice(0, limit).map((endpointKey) => ({
      endpointKey, state: states.get(endpointKey) ?? null, subscriptions: byKey.get(endpointKey) ?? [],
      waiting: counts && (counts.get(endpointKey) ?? []),
    })), counts !== null)
    saySeen(context, account)
    if (keys.length > limit) context.output.warn(`${keys.length - limit} more are not shown (--limit)`)
    const unused = [...byKey.keys()].filter((key) => !states.has(key)).length
    if (unused > 0) context.output.warn(`of ${unused} endpoints of subscriptions nothing is known: nothing was sent to them in 30 days`)
    if (counts === null) context.output.note('What waits for each was not counted (--waiting).')
  })
}

async function show(context: Context, keyOrUrl: string, { since = Date.now() - dayMs, attempts: limit }: ShowOptions): Promise<void> {
  const endpointKey = endpointKeyOf(keyOrUrl)
  await withKafka(context, async (kafka) => {
    const { names } = kafka
    await requireTopics(kafka, [names.endpointHealth, names.attempts])
    const [scanner, account] = [openScan(kafka), createScanAccount()]
    const table = await openSubscriptions(context, kafka)
    const states = await scanning(context, 'endpoint health', account, readEndpoints(scanner, names.endpointHealth, { now: Date.now(), endpointKey }, account))
    const waiting = (await waitingFor(context, kafka, scanner, endpointKey)).get(endpointKey) ?? []
    const seen = createScanAccount()
    const attempts = await scanning(context, 'attempts', seen, readLastAttempts(scanner, names.attempts, { endpointKey, since, limit }, seen))
    const state = states.get(endpointKey) ?? null
    const subscriptions = table.list().filter((one) => one.endpointKey === endpointKey)
    if (state === null && subscriptions.length === 0 && attempts.length === 0 && waiting.length === 0) {
      throw new CliError('not_found', `nothing is known of the endpoint ${endpointKey}`, 'see those there are with "posthouse endpoints list"')
    }
    printEndpoint(context.output, { endpointKey, state, subscriptions, waiting }, attempts)
    for (const one of [account, seen]) saySeen(context, one)
  })
}

/** What waits, by endpoint; says so where not all of it was read. */
async function waitingFor(
  context: Context, kafka: KafkaSession, scanner: Scanner, endpointKey: string | undefined,
): Promise<Map<string, readonly Waiting[]>> {
  const account = createScanAccount()
  const places = await waitingPlaces(kafka)
  const counts = await scanning(context, 'what waits', account, countWaiting({ scanner, admin: kafka.admin }, places, given({ endpointKey }), account))
  saySeen(context, account)
  return counts
}

async function waitingPlaces(kafka: KafkaSession): Promise<readonly WaitingPlace[]> {
  const { admin, config, names } = kafka
  await requireTopics(kafka, [names.deliveries])
  const retry = await listRetryTopics(admin, config.topics.prefix)
  return [
    { topic: names.deliveries, groupId: `${config.groupPrefix}.delivery` },
    ...retry.map(({ name, suffix }) => ({ topic: name, groupId: `${config.groupPrefix}.retry.${suffix}` })),
  ]
}
