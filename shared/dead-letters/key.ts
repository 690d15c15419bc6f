/** Which dead letter: one delivery has one for each replay that failed again. */
export type DeadLetterId = { readonly deliveryId: string; readonly replay: number }

// Ids of deliveries have no dot in them.
const keyForm = /^([^.]+)\.(\d{1,10})$/

/** The key of its record in `dlq`. */
export const deadLetterKey = ({ deliveryId, replay }: DeadLetterId): string => `${deliveryId}.${replay}`

/** null where the text is no key of a dead letter; a delivery id by itself is none. */
export function parseDeadLetterKey(text: string): DeadLetterId | null {
  const [, deliveryId, replay] = keyForm.exec(text) ?? []
  return deliveryId === undefined ? null : { deliveryId, replay: Number(replay) }
}
