import type { Command } from 'commander'
import { matches } from '../../shared/domain/matching.ts'
import type { ConsumedRecord } from '../../shared/kafka/consumed-record.ts'
import type { StartPosition } from '../../shared/kafka/start-position.ts'
import { readEvent, type DoorOptions } from '../../shared/records/event-door.ts'
import { act, addCommand, addNoun, startPosition, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { eventsTopicHint, withKafka } from '../kafka-session.ts'
import { printable } from '../table-text.ts'
import { tail } from '../tail.ts'
import { addReplayCommand } from './events-replay.ts'
import { addSendCommand } from './events-send.ts'

type TailOptions = {
  readonly from: StartPosition
  readonly count?: number
  readonly type?: string
  readonly tenant?: string
  readonly body?: boolean
}

export function addEventsCommands(program: Command): void {
  const events = addNoun(program, 'events', 'what happened, as producers say it')
  addSendCommand(events)
  addCommand(events, 'tail', 'show events as they are produced, until Ctrl-C')
    .option('--from <position>', 'begin at: latest, earliest, a duration ago such as 2h, or a time', startPosition, 'latest')
    .option('--count <n>', 'end after so many', wholeNumber(1, 1_000_000_000))
    .option('--type <pattern>', 'only these: an exact type, prefix.* or *')
    .option('--tenant <tenant>', 'only those of this tenant')
    .option('--body', 'show the bodies too')
    .action(act(tailEvents))
  addReplayCommand(events)
}

async function tailEvents(context: Context, options: TailOptions): Promise<void> {
  await withKafka(context, async (kafka) => {
    const { topics, idField, tenantField, type } = kafka.config.events
    const show = (record: ConsumedRecord): boolean => showEvent(context, record, { idField, tenantField, type }, options)
    await tail(context, kafka, { topics, from: options.from, count: options.count, hint: eventsTopicHint, show })
  })
}

function showEvent(
  { output }: Context, record: ConsumedRecord, door: DoorOptions, { type, tenant, body = false }: TailOptions,
): boolean {
  const { topic, partition, offset, timestamp, value } = record
  const read = readEvent(record, door)
  const isFiltered = type !== undefined || tenant !== undefined
  // Of the producer's own clock and unit; beyond 8.64e15 ms a date has no text.
  const at = new Date(Math.min(timestamp, 8.64e15)).toISOString()
  const place = { at, topic, partition, offset, bytes: value?.length ?? 0 }
  if (read.kind !== 'event') {
    // Who asked for certain events did not ask for what is none.
    if (isFiltered) return false
    const reason = read.kind === 'rejected' ? `${read.reason}: ${read.detail}` : read.reason
    output.row(
      { ...place, kind: read.kind, reason },
      printable([at.slice(11, 23), `${topic}/${partition}/${offset}`, read.kind.toUpperCase(), reason].join('  ')),
    )
    return true
  }
  const { event } = read
  if ((type !== undefined && !matches(type, event.type)) || (tenant !== undefined && event.tenant !== tenant)) return false
  const text = event.body.toString()
  const line = [
    at.slice(11, 23), `${topic}/${partition}/${offset}`, event.type, event.id,
    ...(event.tenant === null ? [] : [`tenant ${event.tenant}`]), `${event.body.length} bytes`,
  ]
  output.row(
    { ...place, kind: 'event', id: event.id, type: event.type, tenant: event.tenant, ...(body ? { body: text } : {}) },
    printable(line.join('  ')) + (body ? `\n${text.split('\n').map(printable).join('\n')}` : ''),
  )
  return true
}
