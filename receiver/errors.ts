/** Anything can be thrown; what is handed on is an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(`something that is no Error was thrown: ${String(thrown)}`, { cause: thrown })
}
