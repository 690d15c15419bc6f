import type { KafkaConnection } from '../kafka/client.ts'
import { takeTurn, type Turn } from '../kafka/turn.ts'

/**
 * The turn to replay or discard, which one process of an installation has at a time; null when somebody has it. Who was killed has it
 * for up to 10 s more. `topic`: that of the dead letters.
 */
export function takeReplayTurn({ connection, groupPrefix, topic }: {
  readonly connection: KafkaConnection
  readonly groupPrefix: string
  readonly topic: string
}): Promise<Turn | null> {
  return takeTurn({ connection, groupId: `${groupPrefix}.replay`, topic })
}
