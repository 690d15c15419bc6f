import type { FailureClass } from './classify.ts'

/** One row of the published table: statuses `from` to `to`, both included. */
export type StatusRow = {
  readonly from: number
  readonly to: number
  readonly failureClass: Exclude<FailureClass, 'local'>
  readonly reason: string
}

function row(from: number, to: number, failureClass: StatusRow['failureClass'], reason: string): StatusRow {
  return { from, to, failureClass, reason }
}

/**
 * What each status that is not a success means for a delivery; the first row that holds a status decides.
 * Sources: RFC 9110 section 15, RFC 6585, RFC 8470, Standard Webhooks. `contract` prints it as it stands.
 */
export const statusTable: readonly StatusRow[] = [
  row(100, 199, 'ambiguous', 'an interim status as the final one: the receiver or a proxy speaks the protocol wrongly'),
  row(300, 399, 'ambiguous', 'redirects are not followed; often a login page or a move in progress, which the receiver can mend'),
  row(404, 404, 'ambiguous', 'may be a route that is missing for the length of a deploy'),
  row(407, 407, 'ambiguous', 'a proxy on the way asks for credentials; the receiver itself has not answered'),
  row(408, 408, 'retriable', 'the receiver gave up waiting for the request'),
  row(409, 409, 'retriable', 'the same delivery is still being handled'),
  row(410, 410, 'permanent', 'the endpoint is gone for good; the subscription is treated as disabled'),
  row(421, 421, 'retriable', 'the connection reached the wrong server'),
  row(423, 424, 'retriable', 'locked, or waiting for something else'),
  row(425, 425, 'retriable', 'too early: ask again once the connection is established'),
  row(429, 429, 'retriable', 'too many requests; Retry-After also throttles the endpoint'),
  row(451, 451, 'ambiguous', 'usually said by something between us and the receiver, and may be lifted'),
  row(400, 499, 'permanent', 'the same request will get the same answer'),
  row(501, 501, 'permanent', 'the receiver does not know POST'),
  row(505, 505, 'permanent', 'the receiver does not speak HTTP/1.1'),
  row(500, 599, 'retriable', 'trouble at the receiver; it may or may not have handled the event'),
]

/** Outside 100 to 599 there is no meaning to rely on. */
export const unknownStatusReason = 'not a status of HTTP'

/** Class of a status by the published table; for anything but 200 to 299. */
export function statusClass(status: number): FailureClass {
  return statusTable.find((row) => status >= row.from && status <= row.to)?.failureClass ?? 'ambiguous'
}
