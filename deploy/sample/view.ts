import type { Account, EndpointAccount } from './account.ts'
import type { Health } from './broker-side.ts'
import type { Progress } from './progress.ts'

/** What is shown of one moment. */
export type Scene = {
  readonly elapsedMs: number
  /** Events there are to be. */
  readonly events: number
  readonly account: Account
  readonly progress: Progress
  /** By endpoint name. */
  readonly health: ReadonlyMap<string, Health>
  /** How often a service was killed; null: none is. */
  readonly kills: { readonly service: string; readonly count: number } | null
}

/** The live screen: a few lines, of what happened and then of each endpoint. */
export function drawScene(scene: Scene): string[] {
  const { account, progress } = scene
  return [
    '',
    `${clock(scene.elapsedMs)}  events in ${account.events} of ${scene.events}, routed ${progress.routedEvents}${killed(scene)}`,
    `deliveries: ${account.delivered} delivered, ${account.deadLettered} dead, ${account.waiting} waiting of ${account.expected}; ${progress.inFlight} requests in flight`,
    `waiting:    ${waitingText(progress)}`,
    '',
    ...drawTable(account, scene.health),
  ]
}

/** The same in one line, for a pipe. */
export function describeScene(scene: Scene): string {
  const { account, progress } = scene
  return `${clock(scene.elapsedMs)} events ${account.events}/${scene.events}, delivered ${account.delivered}, dead ${account.deadLettered}, `
    + `waiting ${account.waiting} (${waitingText(progress)}), p50 ${ms(account.p50Ms)}, p99 ${ms(account.p99Ms)}${killed(scene)}`
}

const columns: readonly (readonly [title: string, text: (part: EndpointAccount) => string])[] = [
  ['expected', ({ expected }) => String(expected)],
  ['delivered', ({ delivered }) => String(delivered)],
  ['dead', ({ deadLettered }) => String(deadLettered)],
  ['attempts', ({ attempts }) => String(attempts)],
  ['p50', ({ p50Ms }) => ms(p50Ms)],
  ['p99', ({ p99Ms }) => ms(p99Ms)],
]

export function drawTable(account: Account, health: ReadonlyMap<string, Health>): string[] {
  const row = (name: string, cells: readonly string[], last: string): string =>
    `${name.padEnd(9)}${cells.map((cell) => cell.padStart(11)).join('')}   ${last}`
  return [
    row('endpoint', columns.map(([title]) => title), 'health'),
    ...Object.entries(account.endpoints).map(([name, part]) => {
      const known = health.get(name)
      return row(name, columns.map(([, text]) => text(part)), known ? `${known.band} ${known.score.toFixed(2)}` : '-')
    }),
  ]
}

/** The account in words, for the end. */
export function describeAccount(account: Account, isClosed: boolean): string {
  const { events, subscriptions, expected, delivered, deadLettered, waiting, lost, repeated, attempts, signatureFailures } = account
  const parts = [
    `${events} events x ${subscriptions} subscriptions = ${expected} deliveries: ${delivered} delivered, ${deadLettered} dead, ${waiting} waiting, ${lost} lost`,
    `${attempts} attempts, ${repeated} repeated, ${signatureFailures} signature failures`,
  ]
  return `${parts.join('; ')}. ${isClosed ? 'The account closes.' : 'THE ACCOUNT DOES NOT CLOSE.'}`
}

function waitingText({ inWindow, waiting, parked }: Progress): string {
  const tiers = waiting.map(({ tier, count }) => `${tier} ${count}`).join(', ')
  return `${inWindow} at delivery, in tiers ${tiers === '' ? '-' : tiers}; parked so far ${parked}`
}

const killed = ({ kills }: Scene): string => (kills === null ? '' : `; ${kills.service} killed ${kills.count} times`)
const ms = (value: number | null): string => (value === null ? '-' : `${Math.round(value)} ms`)
const clock = (elapsedMs: number): string =>
  `${String(Math.floor(elapsedMs / 60_000)).padStart(2, '0')}:${String(Math.floor(elapsedMs / 1_000) % 60).padStart(2, '0')}`
