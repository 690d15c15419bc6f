import type { StoredSubscription } from '../shared/domain/subscription.ts'
import { openSubscriptionTable, type SubscriptionTable } from '../shared/subscriptions/table.ts'
import { createSubscriptionWriter, type SubscriptionWriter, type Written } from '../shared/subscriptions/write.ts'
import type { Rules } from '../shared/subscriptions/draft.ts'
import { CliError, toCliError, unreachable } from './cli-error.ts'
import type { Context } from './context.ts'
import { requireTopics, type KafkaSession } from './kafka-session.ts'

/** Joining a group takes 3 s on a cluster with Kafka's own defaults, and reading a large table some more; ms. */
const readDeadlineMs = 60_000
/** For brokers that go away in the middle: nothing is waited for longer, ms. */
export const writeDeadlineMs = 30_000

/** Reads the whole subscriptions topic and goes on following it. */
export async function openSubscriptions(context: Context, kafka: KafkaSession): Promise<SubscriptionTable> {
  const { connection, names, groupPrefix, config } = kafka
  await requireTopics(kafka, [names.subscriptions])
  const { promise: failed, reject } = Promise.withResolvers<never>()
  failed.catch(() => {})
  const opening = openSubscriptionTable({
    connection, topic: names.subscriptions, groupPrefix: `${groupPrefix}.subscriptions`, onFailed: reject,
  })
  kafka.add('the subscriptions', async () => (await opening).close())
  return context.wait('reading subscriptions', Promise.race([failed, opening.then(async (table) => {
    await table.waitFresh(performance.now())
    return table
  })]), { deadlineMs: readDeadlineMs, onTimeout: () => unreachable(config.kafka.brokers) })
}

/** The rules that what is written must keep. */
export const rulesOf = ({ config }: KafkaSession): Rules => ({ allowsHttp: config.safety.allowsHttp, policyDefaults: config.policy })

/** A writer over a table that is open already. */
export async function openWriter(context: Context, kafka: KafkaSession, table: SubscriptionTable): Promise<SubscriptionWriter> {
  const { producer } = await context.wait('connecting', kafka.producer())
  return createSubscriptionWriter({ table, producer, topic: kafka.names.subscriptions, rules: rulesOf(kafka) })
}

/** One subscription as it is now. @throws CliError `not_found` */
export function findSubscription(table: SubscriptionTable, id: string): StoredSubscription {
  const found = table.get(id)
  if (table.isNewer(id)) throw writtenByNewer(id)
  if (found === undefined || found === 'deleted') throw notFound(id)
  return found
}

/** Waits for a write, and for the second after which every service goes by it. @throws CliError for all that is no success */
export async function settleWrite(
  context: Context, { config }: KafkaSession, writing: Promise<Written>,
): Promise<Extract<Written, { kind: 'written' | 'deleted' }>> {
  const { brokers } = config.kafka
  const written = await context.wait('writing the subscription', writing, {
    deadlineMs: writeDeadlineMs,
    onTimeout: () => new CliError(
      'unreachable', `Kafka at ${brokers.join(', ')} did not acknowledge the write in ${writeDeadlineMs / 1000} s`,
      'it may or may not be made: look with "posthouse subscriptions list" once Kafka answers again',
    ),
  }).catch((error: unknown) => { throw toCliError(error, brokers) })
  if (written.kind === 'written' || written.kind === 'deleted') return written
  if (written.kind === 'invalid') throw new CliError('usage', `the subscription cannot be written: ${written.problems.join('; ')}`)
  if (written.kind === 'not_found') throw notFound(written.id)
  if (written.kind === 'newer') throw writtenByNewer(written.id)
  throw new CliError(
    'conflict', `subscription ${written.id} was changed by someone else meanwhile: theirs stands, nothing of yours was kept`,
    `look at it with "posthouse subscriptions show ${written.id}" and make your change again`,
  )
}

const notFound = (id: string): CliError =>
  new CliError('not_found', `there is no subscription ${id}`, 'see those there are with "posthouse subscriptions list"')

const writtenByNewer = (id: string): CliError =>
  new CliError('failed', `subscription ${id} was written by a newer posthouse, which this one cannot read`, 'upgrade this posthouse')
