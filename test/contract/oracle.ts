/**
 * What each status and each error means, written by hand from the published table and the RFCs, not taken from the code: 1xx as a final
 * status and redirects may be mended; 404 may be a deploy in progress, 407 and 451 are said by something between; the rest of 4xx will
 * be said again, but for those that ask for another try; 501 and 505 say that this request will never be served.
 */
export const classOfStatus: ReadonlyMap<number, string> = new Map([
  ...statuses('delivered', '200-299'),
  ...statuses('retriable', '408 409 421 423 424 425 429 500 502 503 504 506-599'),
  ...statuses('ambiguous', '100-199 300-399 404 407 451'),
  ...statuses('permanent', '400 401 402 403 405 406 410 411 412 413 414 415 416 417 418 419 420 422 426 427 428 430-450 452-499 501 505'),
])

/** Before any byte of the request has left, and after. */
export const classesOfError: Readonly<Record<string, readonly [string, string]>> = {
  connect_refused: ['retriable', 'retriable'],
  connect_unreachable: ['retriable', 'retriable'],
  connect_timeout: ['retriable', 'retriable'],
  dns_not_found: ['retriable', 'retriable'],
  dns_failed: ['retriable', 'retriable'],
  tls_certificate: ['ambiguous', 'ambiguous'],
  tls_protocol: ['ambiguous', 'ambiguous'],
  reset: ['retriable', 'ambiguous'],
  timeout: ['retriable', 'ambiguous'],
  protocol: ['ambiguous', 'ambiguous'],
  blocked_address: ['permanent', 'permanent'],
  invalid_url: ['permanent', 'permanent'],
  no_file_descriptors: ['local', 'local'],
  no_local_resources: ['local', 'local'],
  shutting_down: ['local', 'local'],
  internal: ['local', 'local'],
  unknown: ['ambiguous', 'ambiguous'],
}

/** What follows from a class while attempts are left. */
export const thenOfClass: Readonly<Record<string, string>> = {
  delivered: 'success', retriable: 'retry', ambiguous: 'retry', permanent: 'permanent_failure', local: 'try_again',
}

function statuses(name: string, list: string): (readonly [number, string])[] {
  return list.split(' ').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, index) => [from + index, name] as const)
  })
}
