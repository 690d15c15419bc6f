export type Closers = {
  /** What is to be closed later; `name` says what in an error. Closed at once when everything else already was. */
  add(name: string, close: () => Promise<void> | void): void
  /** Closes everything, last added first, one after the other. An error does not keep the rest open: all are thrown together at the end. */
  close(): Promise<void>
}

/** Keeps what a service has opened in order, so that what uses something is closed before what it uses. `close` may be called again and joins. */
export const createClosers = (): Closers => {
  const open: { name: string; close: () => Promise<void> | void }[] = []
  let closing: Promise<void> | null = null

  const closeAll = async (): Promise<void> => {
    const errors: Error[] = []
    // Popped one by one, as something may still be added by a start that was under way.
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      try {
        await next.close()
      } catch (error) {
        errors.push(new Error(`${next.name} could not be closed: ${error instanceof Error ? error.message : String(error)}`, { cause: error }))
      }
    }
    if (errors.length === 1) throw errors[0]!
    if (errors.length > 1) throw new AggregateError(errors, errors.map(({ message }) => message).join('; '))
  }

  return {
    add: (name, close) => {
      open.push({ name, close })
      // The chain, not a promise of its own, so that whoever awaits close() also waits for this.
      if (closing !== null) {
        closing = closing.then(closeAll)
        closing.catch(() => {})
      }
    },
    close: () => (closing ??= closeAll()),
  }
}
