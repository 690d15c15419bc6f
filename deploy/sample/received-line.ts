/** One request as the receiver logs it: a line of JSON in a file, the receiver's own word on what it got. */
export type Arrival = {
  readonly endpoint: string
  readonly deliveryId: string
  /** Of the body; null where it could not be read or was not signed rightly. */
  readonly eventId: string | null
  /** As the request says, from 1. */
  readonly attempt: number
  /** Epoch ms, when the request was there. */
  readonly receivedAt: number
  /** Epoch ms, when the answer had been written, or whoever asked was found gone. */
  readonly answeredAt: number
  readonly isVerified: boolean
  /** What was answered; null when whoever asked had gone before. */
  readonly status: number | null
  /** Of the body as it came, hex. */
  readonly sha256: string
}

export const toLine = (arrival: Arrival): string => `${JSON.stringify(arrival)}\n`

export const fromLine = (line: string): Arrival => JSON.parse(line) as Arrival
