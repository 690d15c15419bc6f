import type { Consumer } from 'kafkajs'

/** Leaving a group is a courtesy to its other members: brokers that do not answer find out by themselves when the session times out. */
const leaveWithinMs = 5_000

/** Leaves the group and disconnects; gives up on brokers that do not answer, which kafkajs would wait for as long as they are away. */
export async function disconnectConsumer(consumer: Consumer): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([consumer.disconnect(), new Promise<void>((resolve) => { timer = setTimeout(resolve, leaveWithinMs) })])
  clearTimeout(timer)
}
