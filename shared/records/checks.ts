import { RecordError } from './record-error.ts'

/** A text that must be one of ours. @throws RecordError `unreadable` */
export function oneOf<Value extends string>(values: readonly Value[], value: string, field: string): Value {
  const found = values.find((one) => one === value)
  if (found === undefined) throw new RecordError('unreadable', `its ${field} is none that is known`)
  return found
}

/** A count or a number of something. @throws RecordError `unreadable` */
export function atLeast(least: number, value: number, field: string): number {
  if (value < least) throw new RecordError('unreadable', `its ${field} is ${value}`)
  return value
}
