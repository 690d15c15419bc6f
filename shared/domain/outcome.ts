/** Where an attempt was when it failed; decides whether the receiver may have seen the request. */
export type AttemptPhase = 'before_send' | 'sent'

/**
 * What one HTTP attempt returned: a value, never an exception.
 * `response`: a status line was read (200 to 299 is delivered, whatever the body then did).
 * `failure`: none was read; `error` is a short stable code such as `connect_refused` (see classify.ts).
 */
export type Outcome =
  | {
      readonly kind: 'response'
      readonly status: number
      /** Raw header values; null where absent. Several Retry-After headers: the array as received. */
      readonly retryAfter: readonly string[]
      readonly date: string | null
      readonly excerpt: string | null
    }
  | {
      readonly kind: 'failure'
      readonly error: string
      readonly phase: AttemptPhase
      /** For people; never holds a URL, a secret or a resolved address. */
      readonly detail: string
    }
