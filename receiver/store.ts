/** The answer that a repeat gets again. */
export type StoredAnswer = {
  readonly status: number
  readonly contentType: string | null
  readonly body: Uint8Array
}

export type ClaimRequest = {
  /** What is to run once. */
  readonly key: string
  /** Of the body: the same key with another one is a conflict. */
  readonly fingerprint: string
  /** Of the call that asks; repeats are told the one that got the claim. */
  readonly requestId: string
  /** After this long a holder that has not finished counts as crashed. */
  readonly lockMs: number
  /** How long the key is remembered, from now; never shorter than the lock. */
  readonly ttlMs: number
}

export type ClaimResult =
  /** Ours: run. */
  | { readonly state: 'claimed'; readonly token: number }
  /** Somebody else's, for at most that long. */
  | { readonly state: 'running'; readonly requestId: string; readonly retryAfterMs: number }
  | { readonly state: 'finished'; readonly requestId: string; readonly answer: StoredAnswer }
  /** The key was claimed with another fingerprint. */
  | { readonly state: 'conflict'; readonly requestId: string }

/** By what a holder is known to the store. */
export type HeldClaim = {
  readonly key: string
  /**
   * The fencing token: each claim of a key has a larger one than all before. A store you write to may refuse what comes with
   * a smaller one than it has seen.
   */
  readonly token: number
  readonly ttlMs: number
}

/** What the handler gets. */
export type Claim = HeldClaim & {
  readonly requestId: string
  /** Aborted when the lock runs out: from then on another process may run the same. */
  readonly signal: AbortSignal
}

/**
 * Where claims are kept. Each call is atomic over all processes that share the store, and the store's own clock decides.
 * A key is in one of four states:
 *
 *   free      never seen, released, or its ttl is over
 *   running   claimed, its lock not over
 *   abandoned claimed, its lock over: free for the same fingerprint, with a larger token
 *   finished  an answer is kept
 *
 * In Redis it is a hash for each key with these fields, and one Lua script (EVAL) for each call, since a script is atomic. The
 * README has them.
 */
export type Store = {
  /** Free or abandoned: makes it running. Rejects when the store cannot be reached: then nothing has run. */
  claim(request: ClaimRequest): Promise<ClaimResult>
  /**
   * Keeps the answer and begins the ttl anew. False, and nothing is changed, when the claim is no longer this token's. May be
   * called again with the same token (an answer that got lost): true again.
   */
  finish(claim: HeldClaim, answer: StoredAnswer): Promise<boolean>
  /** Makes it free. False, and nothing is changed, when the claim is no longer this token's, or finished. */
  release(claim: HeldClaim): Promise<boolean>
}
