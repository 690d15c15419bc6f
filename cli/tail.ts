import type { ConsumedRecord } from '../shared/kafka/consumed-record.ts'
import { follow } from '../shared/kafka/follow.ts'
import type { StartPosition } from '../shared/kafka/start-position.ts'
import { unreachable } from './cli-error.ts'
import type { Context } from './context.ts'
import { requireTopics, type KafkaSession } from './kafka-session.ts'

export type TailOptions = {
  readonly topics: readonly string[]
  readonly from: StartPosition
  /** Ends after so many records were shown; undefined: never. */
  readonly count: number | undefined
  /** What to do about a topic that does not exist. */
  readonly hint?: string
  /** Prints the record, or returns false to pass it over. */
  readonly show: (record: ConsumedRecord) => boolean
}

const joinDeadlineMs = 60_000

/** Shows records as they are written, until `count`, Ctrl-C, or until nobody reads the output any more. */
export async function tail(context: Context, kafka: KafkaSession, { topics, from, count, hint, show }: TailOptions): Promise<void> {
  const { connection, config, groupPrefix } = kafka
  await requireTopics(kafka, topics, hint)
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  done.catch(() => {})
  let shown = 0
  const opening = follow({
    connection, topics, from, groupPrefix: `${groupPrefix}.tail`, onFailed: reject,
    onRecord(record) {
      if (shown === count || !show(record)) return
      shown++
      if (shown === count) resolve()
    },
  })
  kafka.add('the reader', async () => (await opening).close())
  await context.wait('joining', opening, { deadlineMs: joinDeadlineMs, onTimeout: () => unreachable(config.kafka.brokers) })
  context.output.note(`Following ${topics.join(', ')}; Ctrl-C ends it.`)
  await context.follow(done)
}
