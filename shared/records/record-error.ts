/**
 * Why a record of ours cannot be read.
 * `unknown_schema`: a newer posthouse wrote it; never poison, its partition waits. `unreadable`: it goes to the rejected topic.
 */
export type RecordErrorKind = 'unknown_schema' | 'unreadable'

export class RecordError extends Error {
  override readonly name = 'RecordError'
  readonly kind: RecordErrorKind

  constructor(kind: RecordErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

export const isRecordError = (error: unknown): error is RecordError => error instanceof RecordError
