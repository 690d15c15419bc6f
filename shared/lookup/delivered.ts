import type { Attempt } from '../domain/delivery.ts'
import { createHashSlots } from '../domain/hash-slots.ts'
import type { Scanner } from '../kafka/scanner.ts'
import { createAttemptReader } from './attempt-filter.ts'
import type { ScanAccount } from './scan-account.ts'

/** How deliveries of one subscription stand, as far as `attempts` goes back (7 d unless the topic was configured otherwise). */
export type KnownDeliveries = {
  /** `delivered`: once, whichever replay it was. `waiting`: attempted, and to be again. `ended`: dead or cancelled. null: not attempted. */
  stateOf(deliveryId: string): 'delivered' | 'waiting' | 'ended' | null
}

const waiting = 1
const ended = 2
const delivered = 3

/**
 * Reads every partition of `attempts` from `since` (epoch ms, broker time) on: what was sent to another URL of the subscription lies under
 * another key. Some 40 bytes a delivery are kept.
 */
export async function readKnownDeliveries(
  scanner: Scanner, topic: string, { subscriptionId, since }: { readonly subscriptionId: string; readonly since: number }, account: ScanAccount,
): Promise<KnownDeliveries> {
  const slots = createHashSlots()
  let states = new Uint8Array(slots.capacity)
  const read = createAttemptReader({ subscriptionId })

  function note({ deliveryId, state }: Attempt): void {
    const slot = slots.take(deliveryId)
    if (slot >= states.length) {
      const grown = new Uint8Array(slots.capacity)
      grown.set(states)
      states = grown
    }
    if (states[slot] !== delivered) states[slot] = state === 'success' ? delivered : state === 'waiting' ? waiting : ended
  }

  const ranges = await scanner.ranges(topic, { since })
  account.begin(ranges)
  for (const range of ranges) {
    for await (const records of scanner.read(range)) {
      account.took(records)
      for (const record of records) {
        const attempt = read(record)
        if (attempt === 'unreadable') account.unreadableOne()
        else if (attempt !== null) note(attempt)
      }
    }
  }

  return {
    stateOf(deliveryId) {
      const slot = slots.find(deliveryId)
      const state = slot < 0 ? 0 : states[slot]
      return state === delivered ? 'delivered' : state === waiting ? 'waiting' : state === ended ? 'ended' : null
    },
  }
}
