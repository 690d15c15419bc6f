/**
 * Within one partition's window, a record that repeats an unfinished one is not sent: it shares that one's fate.
 * One per partition, dropped with it: what was attached to an abandoned delivery is then read again by the next owner.
 */
export type WindowDuplicates<T> = {
  /** Keys that are in hand. */
  readonly size: number
  /** 'first': send it, and release the key whatever becomes of it. 'attached': do not; release will give it back. */
  attach(key: string, item: T): 'first' | 'attached'
  /**
   * The first one is settled, parked, or abandoned: gives what was attached to it, in order of arrival, to be treated likewise.
   * The key is forgotten, so a record that comes after (a parked one, returned) is a first one again.
   */
  release(key: string): readonly T[]
}

/** Records with the same key are the same try of the same delivery. `keyHash` is settledKey's. */
export function windowKey(keyHash: Buffer, replay: number, attempt: number): string {
  return `${keyHash.toString('latin1')}/${replay}/${attempt}`
}

const none: readonly never[] = Object.freeze([])

export function createWindowDuplicates<T>(): WindowDuplicates<T> {
  // null until something is attached: most never have a repeat.
  const attached = new Map<string, T[] | null>()
  return {
    get size() {
      return attached.size
    },
    attach(key, item) {
      const items = attached.get(key)
      if (items === undefined) {
        attached.set(key, null)
        return 'first'
      }
      if (items === null) attached.set(key, [item])
      else items.push(item)
      return 'attached'
    },
    release(key) {
      const items = attached.get(key)
      attached.delete(key)
      return items ?? none
    },
  }
}
