import type { Outcome } from './outcome.ts'

/**
 * What an ended request says about the endpoint's load. overloaded: timeout, 429 or 503. success: 2xx. other: everything else
 * (a 400 or a refused connection says nothing about how many requests it can bear).
 */
export type LoadSign = 'success' | 'overloaded' | 'other'

/** What an outcome says about the load on its endpoint. */
export function loadSignOf(outcome: Outcome): LoadSign {
  if (outcome.kind === 'failure') return outcome.error === 'timeout' || outcome.error === 'connect_timeout' ? 'overloaded' : 'other'
  if (outcome.status >= 200 && outcome.status < 300) return 'success'
  return outcome.status === 429 || outcome.status === 503 ? 'overloaded' : 'other'
}

/**
 * How many requests may be in flight to one endpoint, found by trying: halved when it is overloaded, plus one after as many
 * successes as the cap, if the cap was reached meanwhile (else nothing was learnt about it).
 *
 * Requests are numbered as they begin, and only those begun after the last cut count: the answers still to come from before it
 * would otherwise halve the cap again for one and the same overload, or raise it by what the endpoint bore before.
 */
export type EndpointCap = {
  readonly cap: number
  readonly inFlight: number
  hasRoom(): boolean
  /** To be called when a request starts; gives its number, for `end`. Does not check for room. */
  begin(): number
  /** To be called once for each `begin`, whatever became of it. */
  end(request: number, sign: LoadSign): void
  /** The endpoint asked for quiet: it starts again at 1. To be called when the throttle begins, and where one is restored. */
  afterThrottle(): void
}

export type EndpointCapOptions = { readonly start?: number; readonly max?: number }

export function createEndpointCap({ start = 10, max = 256 }: EndpointCapOptions = {}): EndpointCap {
  let cap = Math.max(1, Math.min(start, max))
  let inFlight = 0
  let begun = 0
  let firstAfterCut = 0
  let successes = 0
  let wasReached = false

  function cutTo(next: number): void {
    cap = next
    firstAfterCut = begun
    successes = 0
    wasReached = false
  }

  return {
    get cap() {
      return cap
    },
    get inFlight() {
      return inFlight
    },
    hasRoom: () => inFlight < cap,

    begin() {
      inFlight += 1
      if (inFlight >= cap) wasReached = true
      begun += 1
      return begun - 1
    },

    end(request, sign) {
      inFlight -= 1
      if (request < firstAfterCut) return
      if (sign === 'overloaded') {
        cutTo(Math.max(1, Math.floor(cap / 2)))
      } else if (sign === 'success') {
        successes += 1
        if (successes < cap) return
        if (wasReached && cap < max) cap += 1
        successes = 0
        wasReached = inFlight >= cap
      }
    },

    afterThrottle: () => cutTo(1),
  }
}
