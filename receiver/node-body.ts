/** What is used of node:http's IncomingMessage, or of what a framework makes of it. */
export type NodeRequest = {
  readonly method?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whether it was read to its end. */
  readonly readableEnded: boolean
  readonly destroyed: boolean
  on(event: string, listener: (chunk: Uint8Array) => void): unknown
  off(event: string, listener: (chunk: Uint8Array) => void): unknown
  /** Bytes that a parser of raw bodies has left here, and elsewhere here. */
  readonly body?: unknown
  readonly rawBody?: unknown
}

export type BodyRead =
  | { readonly kind: 'whole'; readonly body: Uint8Array }
  | { readonly kind: 'too-large' }
  /** The sender hung up: there is nobody to answer. */
  | { readonly kind: 'cut-off' }

/** How long the rest of a body that is too large is read and thrown away, so that the sender gets to read the answer. */
const discardMs = 1_000

/**
 * Reads the body as bytes, and holds no more of it than the limit. Rejects with a TypeError where something else has read it and
 * has not left the bytes: what a parser made of them cannot be verified.
 */
export function readNodeBody(request: NodeRequest, maxBytes: number): Promise<BodyRead> {
  for (const left of [request.rawBody, request.body]) {
    if (left instanceof Uint8Array) return Promise.resolve(left.byteLength > maxBytes ? { kind: 'too-large' } : { kind: 'whole', body: left })
  }
  if (request.readableEnded) {
    return Promise.reject(new TypeError(
      'the body was read before the webhook handler could: put this route before the body parser, or give it express.raw({ type: "*/*" })',
    ))
  }
  if (request.destroyed) return Promise.resolve({ kind: 'cut-off' })
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    let discarding: ReturnType<typeof setTimeout> | null = null
    const onData = (chunk: Uint8Array): void => {
      if (!(chunk instanceof Uint8Array)) return settle(() => reject(new TypeError('setEncoding was called on the request: its body can no longer be verified')))
      bytes += chunk.byteLength
      if (bytes <= maxBytes) return void chunks.push(chunk)
      chunks.length = 0
      discarding ??= setTimeout(() => settle(() => resolve({ kind: 'too-large' })), discardMs)
    }
    const onEnd = (): void => settle(() => resolve(discarding === null ? { kind: 'whole', body: Buffer.concat(chunks, bytes) } : { kind: 'too-large' }))
    const onCutOff = (): void => settle(() => resolve({ kind: 'cut-off' }))
    const listeners = [['data', onData], ['end', onEnd], ['error', onCutOff], ['close', onCutOff]] as const
    const settle = (outcome: () => void): void => {
      if (discarding !== null) clearTimeout(discarding)
      for (const [event, listener] of listeners) request.off(event, listener)
      // What still goes wrong with this connection is nobody's concern, and must not end the process.
      request.on('error', () => undefined)
      outcome()
    }
    for (const [event, listener] of listeners) request.on(event, listener)
  })
}
