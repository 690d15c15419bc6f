import { errorTable, type ErrorCode } from './error-codes.ts'
import { exceptionCode } from './exception-code.ts'
import type { AttemptPhase, Outcome } from './outcome.ts'
import { statusClass } from './status-table.ts'

export const failureClasses = ['retriable', 'ambiguous', 'permanent', 'local'] as const
export type FailureClass = (typeof failureClasses)[number]

/** The statuses a receiver acknowledges with. Nothing else is a success (RFC 9110 section 15.3). */
export function isDelivered(status: number): boolean {
  return status >= 200 && status <= 299
}

/**
 * Says what an outcome means for its delivery. `statusClasses` are a subscription's exceptions to the published table;
 * they cannot make a failure of a 2xx. An error code that is not in the table (written by a newer version) is ambiguous:
 * nothing is dropped because it was not understood.
 */
export function classify(outcome: Outcome, statusClasses: ReadonlyMap<number, FailureClass>): 'delivered' | FailureClass {
  if (outcome.kind === 'response') {
    if (isDelivered(outcome.status)) return 'delivered'
    return statusClasses.get(outcome.status) ?? statusClass(outcome.status)
  }
  return rowOf(outcome.error)?.[outcome.phase] ?? 'ambiguous'
}

/** Short stable code of an outcome for records, logs and metrics: `http_503`, `connect_timeout` ... */
export function failureCode(outcome: Outcome): string {
  return outcome.kind === 'response' ? `http_${outcome.status}` : outcome.error
}

/**
 * Turns what the HTTP client threw into the fields of a failed outcome. `sent`: whether any byte of the request may have
 * left; the codes alone cannot tell, as ECONNRESET comes before and after. `detail` is made of our words and the
 * system's code only, since messages repeat URLs, host names and resolved addresses.
 */
export function errorFromException(thrown: unknown, sent: boolean): { error: ErrorCode; phase: AttemptPhase; detail: string } {
  const { code, systemCode } = exceptionCode(thrown)
  const meaning = rowOf(code)?.meaning ?? code
  return { error: code, phase: sent ? 'sent' : 'before_send', detail: systemCode === null ? meaning : `${meaning} (${systemCode})` }
}

function rowOf(error: string): (typeof errorTable)[number] | undefined {
  return errorTable.find((row) => row.error === error)
}
