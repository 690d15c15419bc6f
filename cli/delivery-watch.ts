import type { Attempt } from '../shared/domain/delivery.ts'
import type { Event } from '../shared/domain/event.ts'
import { deliveryId } from '../shared/domain/ids.ts'
import type { StoredSubscription } from '../shared/domain/subscription.ts'
import { follow } from '../shared/kafka/follow.ts'
import { describeOutcome, lineOfAttempt, readAttempt } from './attempt-view.ts'
import { CliError, unreachable } from './cli-error.ts'
import type { Context } from './context.ts'
import { requireTopics, type KafkaSession } from './kafka-session.ts'
import { openSubscriptions } from './subscription-session.ts'

export type DeliveryWatch = {
  /** Waits until all have ended, prints how, and throws a CliError where not all of them succeeded, or not in `timeoutMs`. */
  report(timeoutMs: number): Promise<void>
}

type Expected = { readonly deliveryId: string; readonly event: Event; readonly subscription: StoredSubscription }

type Row = {
  readonly eventId: string
  readonly deliveryId: string
  readonly subscriptionId: string
  readonly endpointKey: string
  /** `none`: no attempt was seen. `paused`: it is parked until the subscription is resumed, and not waited for. */
  readonly state: Attempt['state'] | 'none' | 'paused'
  readonly attempts: number
  readonly status: number | null
  readonly error: string | null
  readonly reason: string | null
  readonly nextDueAt: number | null
}

const joinDeadlineMs = 60_000

/** Works out which deliveries the events will become, and follows their attempts from now on: call it before the events are sent. */
export async function watchDeliveries(context: Context, kafka: KafkaSession, events: readonly Event[]): Promise<DeliveryWatch> {
  const { connection, names, groupPrefix, config } = kafka
  await requireTopics(kafka, [names.attempts])
  const table = await openSubscriptions(context, kafka)
  const expected = events.flatMap((event) => table.match(event.tenant, event.type).routed.map((subscription): Expected => ({
    event, subscription,
    deliveryId: deliveryId({ tenant: event.tenant, source: event.source, eventId: event.id, subscriptionId: subscription.id }),
  })))
  const pending = new Set(expected.filter(({ subscription }) => subscription.state === 'active').map((one) => one.deliveryId))
  const latest = new Map<string, Attempt>()
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  done.catch(() => {})
  if (pending.size === 0) resolve()

  const ids = new Set(expected.map((one) => one.deliveryId))
  const opening = follow({
    connection, topics: [names.attempts], from: 'latest', groupPrefix: `${groupPrefix}.wait`, onFailed: reject,
    onRecord({ value }) {
      const attempt = value && readAttempt(value)
      if (attempt === null || attempt === 'unreadable' || !ids.has(attempt.deliveryId)) return
      latest.set(attempt.deliveryId, attempt)
      context.output.note(lineOfAttempt(attempt, Date.now()))
      if (attempt.state !== 'waiting') pending.delete(attempt.deliveryId)
      if (pending.size === 0) resolve()
    },
  })
  kafka.add('the reader of attempts', async () => (await opening).close())
  await context.wait('joining', opening, { deadlineMs: joinDeadlineMs, onTimeout: () => unreachable(config.kafka.brokers) })

  return {
    async report(timeoutMs) {
      const timer = setTimeout(resolve, timeoutMs)
      try {
        await context.wait(`waiting for ${pending.size} deliveries`, done)
      } finally {
        clearTimeout(timer)
      }
      const rows = expected.map((one) => rowOf(one, latest.get(one.deliveryId)))
      printRows(context, rows)
      failUnlessDelivered(rows, events)
    },
  }
}

function rowOf({ deliveryId, event, subscription }: Expected, attempt: Attempt | undefined): Row {
  return {
    eventId: event.id, deliveryId, subscriptionId: subscription.id, endpointKey: attempt?.endpointKey ?? subscription.endpointKey,
    state: attempt?.state ?? (subscription.state === 'paused' ? 'paused' : 'none'),
    attempts: attempt?.attempt ?? 0, status: attempt?.status ?? null, error: attempt?.error ?? null, reason: attempt?.reason ?? null,
    nextDueAt: attempt?.nextDueAt ?? null,
  }
}

function printRows({ output }: Context, rows: readonly Row[]): void {
  const outcome = (row: Row): string => {
    if (row.state === 'none') return 'no attempt was seen'
    return row.state === 'paused' ? 'waits: the subscription is paused' : describeOutcome({ ...row, state: row.state }, Date.now())
  }
  output.rows(rows, [
    { title: 'EVENT', text: ({ eventId }) => eventId },
    { title: 'DELIVERY', text: ({ deliveryId }) => deliveryId },
    { title: 'SUBSCRIPTION', text: ({ subscriptionId }) => subscriptionId },
    { title: 'ATTEMPTS', text: ({ attempts }) => String(attempts), align: 'right' },
    { title: 'OUTCOME', text: outcome },
  ])
}

function failUnlessDelivered(rows: readonly Row[], events: readonly Event[]): void {
  if (rows.length === 0) {
    const [first] = events
    const whose = first?.tenant == null ? 'without a tenant' : `of tenant ${first.tenant}`
    throw new CliError(
      'not_found', `sent, but no subscription wants it: none that is active matches ${first?.type} ${whose}`,
      'see "posthouse subscriptions list"',
    )
  }
  const underWay = rows.filter(({ state }) => state === 'waiting' || state === 'none')
  if (underWay.length > 0) {
    const hint = underWay.every(({ state }) => state === 'none')
      ? 'see with "posthouse doctor" whether the services run'
      : 'wait longer with --timeout, or follow them with "posthouse deliveries tail"'
    throw new CliError('timed_out', `${underWay.length} of ${rows.length} deliveries are still under way`, hint)
  }
  const undelivered = rows.filter(({ state }) => state !== 'success')
  if (undelivered.length > 0) throw new CliError('partial', `${undelivered.length} of ${rows.length} deliveries did not succeed`)
}
