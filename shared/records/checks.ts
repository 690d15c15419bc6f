import { RecordError } from './record-error.ts'

const shownCharacters = 40

/** A text that must be one of ours. @throws RecordError `unknown_value` */
export function oneOf<Value extends string>(values: readonly Value[], value: string, field: string): Value {
  if (!(values as readonly string[]).includes(value)) {
    throw new RecordError('unknown_value', `its ${field} is ${JSON.stringify(value.slice(0, shownCharacters))}, which this version of posthouse does not know`)
  }
  return value as Value
}

/** A count, a number or a time. @throws RecordError `unreadable` */
export function atLeast(least: number, value: number, field: string): number {
  if (value < least) throw new RecordError('unreadable', `its ${field} is ${value}, the least that can be is ${least}`)
  return value
}
