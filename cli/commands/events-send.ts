import type { Command } from 'commander'
import type { Event } from '../../shared/domain/event.ts'
import type { Acknowledgement } from '../../shared/kafka/producer.ts'
import { CliError, toCliError, unreachable } from '../cli-error.ts'
import { act, addCommand, timerMs } from '../command.ts'
import type { Context } from '../context.ts'
import { splitEvents, toOutgoing, wrapData, type EventFields, type OutgoingEvent } from '../event-input.ts'
import { readInput } from '../input.ts'
import { eventsTopicHint, requireTopics, withKafka, type KafkaSession } from '../kafka-session.ts'
import { watchDeliveries } from '../delivery-watch.ts'

type SendOptions = EventFields & {
  readonly data?: string
  readonly topic?: string
  readonly wait?: boolean
  readonly timeout: number
}

const help = `
The file (or standard input: -) holds one event as JSON, or one a line; its bytes are what subscribers receive. Id, type and tenant are
read from it as the router does, unless they are given here. With --data an event is made: {"id", "type", "created", "data"}.
With --wait: exit code 3 when no subscription wants the event, 6 when a delivery did not succeed, 75 when one is still under way.`

const sendDeadlineMs = 30_000

export function addSendCommand(events: Command): void {
  addCommand(events, 'send [file]', 'produce events from a file, standard input or the command line')
    .option('--data <json>', 'the data of one event, instead of a file')
    .option('--type <type>', 'event type')
    .option('--id <id>', 'event id (with --data: a new one unless given)')
    .option('--tenant <tenant>', 'whose event it is')
    .option('--key <key>', 'the record\'s key')
    .option('--topic <topic>', 'where to; the first of POSTHOUSE_EVENTS_TOPICS when left out')
    .option('--wait', 'follow the deliveries and print how each ended')
    .option('--timeout <duration>', 'how long to follow them', timerMs, 60_000)
    .addHelpText('after', help)
    .action(act(send))
}

async function send(context: Context, file: string | undefined, options: SendOptions): Promise<void> {
  const values = await valuesFrom(context, file, options)
  if (values.length > 1 && options.id !== undefined) {
    throw new CliError(
      'usage', `--id would give ${values.length} events one id`, 'leave it out, and give each event its own',
    )
  }
  await withKafka(context, async (kafka) => {
    const { topics, idField, tenantField, type } = kafka.config.events
    const topic = options.topic ?? topics[0]!
    // With --data all is in the value already.
    const outgoing = toOutgoing(
      values, options.data === undefined ? options : options.key === undefined ? {} : { key: options.key }, topic,
      { idField, tenantField, type },
    )
    if (!topics.includes(topic)) {
      context.output.warn(`${topic} is not one of POSTHOUSE_EVENTS_TOPICS (${topics.join(', ')}): no router configured so reads it`)
    }
    await requireTopics(kafka, [topic], eventsTopicHint)
    const watch = options.wait ? await watchDeliveries(context, kafka, outgoing.map(({ event }) => event)) : null
    const { sent, failure } = await produce(context, kafka, outgoing)
    if (watch && failure === null) return watch.report(options.timeout)
    context.output.rows(sent.map(({ event: { id, type, tenant }, topic, partition, offset }) => ({ id, type, tenant, topic, partition, offset })), [
      { title: 'ID', text: ({ id }) => id },
      { title: 'TYPE', text: ({ type }) => type },
      { title: 'TENANT', text: ({ tenant }) => tenant ?? '-' },
      { title: 'TOPIC', text: ({ topic }) => topic },
      { title: 'PARTITION', text: ({ partition }) => String(partition), align: 'right' },
      { title: 'OFFSET', text: ({ offset }) => String(offset), align: 'right' },
    ])
    if (failure !== null) throw failure
  })
}

async function valuesFrom({ signal }: Context, file: string | undefined, options: SendOptions): Promise<readonly Buffer[]> {
  if (options.data !== undefined) {
    if (file !== undefined) throw new CliError('usage', 'give either a file or --data')
    return [wrapData(options.data, options)]
  }
  if (file === undefined && process.stdin.isTTY) {
    throw new CliError(
      'usage', 'there is no event to send', 'give a file, pipe one in, or use --type and --data',
    )
  }
  return splitEvents(await readInput(file ?? '-', signal), file === undefined || file === '-' ? 'standard input' : file)
}

type Sent = Acknowledgement & { readonly event: Event }

/** Those that were sent, and where some were not, an error that says how many. */
async function produce(
  context: Context, kafka: KafkaSession, outgoing: readonly OutgoingEvent[],
): Promise<{ readonly sent: readonly Sent[]; readonly failure: CliError | null }> {
  const { brokers } = kafka.config.kafka
  const { producer } = await context.wait('connecting', kafka.producer())
  const settled = await context.wait(`sending ${outgoing.length} events`, Promise.allSettled(outgoing.map(async ({ record, event }): Promise<Sent> => {
    await producer.room()
    return { ...await producer.send(record), event }
  })), { deadlineMs: sendDeadlineMs + outgoing.length, onTimeout: () => unreachable(brokers) })
  const sent = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = settled.filter((one) => one.status === 'rejected')
  if (failed.length === 0) return { sent, failure: null }
  const first = toCliError(failed[0]?.reason, brokers)
  const failure = sent.length === 0 ? first : new CliError(
    'partial', `${failed.length} of ${outgoing.length} events were not sent; the first: ${first.message}`, first.hint,
  )
  return { sent, failure }
}
