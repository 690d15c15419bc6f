/**
 * Why a record of ours cannot be read.
 * `unknown_schema`: a newer posthouse wrote it; never poison, its partition waits. `unreadable`: corrupt, short, too long or with a
 * value that cannot be; it goes to the rejected topic. `unknown_value`: the bytes are sound, but a text that must be one of ours
 * (a state, a failure class) is none that this version knows. Waiting would hold the partition for it, so it is rejected as well
 * unless the reader knows better.
 */
export type RecordErrorKind = 'unknown_schema' | 'unknown_value' | 'unreadable'

export class RecordError extends Error {
  override readonly name = 'RecordError'
  readonly kind: RecordErrorKind

  constructor(kind: RecordErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

export const isRecordError = (error: unknown): error is RecordError => error instanceof RecordError
