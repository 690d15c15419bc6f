export type ProduceRefusal = 'too_large' | 'unknown_topic' | 'refused' | 'closed' | 'internal'

/** Why one record will not be written. `closed` does not say it was not: its answer may be what never came. */
export class ProduceError extends Error {
  readonly reason: ProduceRefusal
  constructor(reason: ProduceRefusal, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProduceError'
    this.reason = reason
  }
}
