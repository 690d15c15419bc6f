import { createHash } from 'node:crypto'
import webhooks from '@octokit/webhooks-examples' with { type: 'json' }

/** An event as it is produced. */
export type SampleEvent = {
  readonly id: string
  readonly type: string
  /** JSON text: what each endpoint is to receive, byte for byte. */
  readonly body: Buffer
  readonly sha256: string
}

/** As the package holds them; of its own types only what is read here. */
type Definition = { readonly name: string; readonly examples: readonly object[] }
type Payload = { readonly type: string; readonly text: string }

const definitions = webhooks as unknown as readonly Definition[]

/** GitHub's own example payloads, 329 of them: `github.issues.opened` and so on; those without an action are `github.push`. */
const payloads: readonly Payload[] = definitions.flatMap(({ name, examples }) => examples.map((payload) => ({
  type: 'action' in payload && typeof payload.action === 'string' ? `github.${name}.${payload.action}` : `github.${name}`,
  text: JSON.stringify(payload),
})))

export const corpusSize = payloads.length

/** The `n`-th event of a run, from 1; after the last payload the corpus begins anew. `now` epoch ms. */
export function eventOf(n: number, now: number): SampleEvent {
  const { type, text } = payloads[(n - 1) % payloads.length]!
  const id = `evt_${n}`
  const body = Buffer.from(`{"id":"${id}","type":"${type}","created":${Math.floor(now / 1_000)},"data":${text}}`)
  return { id, type, body, sha256: createHash('sha256').update(body).digest('hex') }
}
