import type { StoredSubscription } from '../shared/domain/subscription.ts'
import { isGoneFor, type EndpointState } from '../shared/lookup/endpoints.ts'
import type { DeliverySummary } from '../shared/lookup/deliveries.ts'
import type { Waiting } from '../shared/lookup/waiting.ts'
import { lineOfAttempt, viewOfAttempt } from './attempt-view.ts'
import type { Output } from './output.ts'
import { timeText } from './scan-session.ts'
import { hostOf } from '../shared/subscriptions/view.ts'

/** One endpoint and what belongs to it; what is not known is null. */
export type EndpointView = {
  readonly endpointKey: string
  readonly state: EndpointState | null
  readonly subscriptions: readonly StoredSubscription[]
  /** null: not counted. */
  readonly waiting: readonly Waiting[] | null
}

const time = (at: number | null): string | null => (at === null ? null : timeText(at))

/** As JSON: times in ISO, of URLs the host only. */
export function jsonOf({ endpointKey, state, subscriptions, waiting }: EndpointView) {
  return {
    endpointKey,
    host: hostsOf(subscriptions),
    band: state?.band ?? null, score: state?.score ?? null, bandScore: state?.bandScore ?? null, recentAttempts: state?.attempts ?? null,
    lastError: state?.lastError ?? null, lastStatus: state?.lastStatus ?? null,
    throttledUntil: time(state?.throttledUntil ?? null), goneSince: time(state?.goneSince ?? null), updatedAt: time(state?.updatedAt ?? null),
    subscriptions: subscriptions.map((one) => ({ id: one.id, state: one.state, isGone: state !== null && isGoneFor(state, one) })),
    waiting: waiting?.map((one) => ({ ...one, nextDueAt: time(one.nextDueAt) })) ?? null,
  }
}

export type EndpointRow = ReturnType<typeof jsonOf>

export function printEndpoints(output: Output, endpoints: readonly EndpointView[], isWaitingCounted: boolean): void {
  output.rows(endpoints.map(jsonOf), [
    { title: 'ENDPOINT', text: ({ endpointKey }) => endpointKey },
    { title: 'HOST', text: ({ host }) => host ?? '-' },
    { title: 'BAND', text: ({ band }) => band ?? '-', paint: (text, { band }) => (band === null || band === 'healthy' ? text : output.style(band === 'degraded' ? 'yellow' : 'red', text)) },
    { title: 'SCORE', text: ({ score }) => scoreText(score), align: 'right' },
    { title: 'LAST ERROR', text: ({ lastError }) => lastError ?? '-' },
    ...(isWaitingCounted ? [{ title: 'WAITING', text: ({ waiting }: EndpointRow) => String(sumOf(waiting)), align: 'right' as const }] : []),
    { title: 'UPDATED', text: ({ updatedAt }) => (updatedAt === null ? '-' : `${updatedAt.slice(0, 19)}Z`) },
    { title: 'NOTE', text: noteOf },
  ])
}

/** What keeps deliveries from it, if anything does. */
function noteOf({ goneSince, throttledUntil, subscriptions }: EndpointRow): string {
  if (goneSince !== null && (subscriptions.length === 0 || subscriptions.some(({ isGone }) => isGone))) return `gone since ${goneSince.slice(0, 19)}Z`
  return throttledUntil === null ? '' : `throttled until ${throttledUntil.slice(0, 19)}Z`
}

export function printEndpoint(output: Output, endpoint: EndpointView, attempts: readonly DeliverySummary[]): void {
  const view = jsonOf(endpoint)
  const { waiting } = endpoint
  output.record({ ...view, attempts: attempts.map((one) => ({ ...viewOfAttempt(one), recordedAt: timeText(one.recordedAt) })) }, [
    ['endpoint', view.endpointKey],
    ['host', view.host ?? 'not known: no subscription has it'],
    ['band', view.band ?? 'not known: nothing was sent to it in 30 days'],
    ['score', `${scoreText(view.score)}, without time ${scoreText(view.bandScore)}, of ${view.recentAttempts ?? 0} attempts`],
    ['last error', view.lastError ?? '-'],
    ['last status', view.lastStatus === null ? '-' : String(view.lastStatus)],
    ['throttled', view.throttledUntil === null ? 'no' : `until ${view.throttledUntil}`],
    ['gone', view.goneSince === null ? 'no' : `since ${view.goneSince}; subscriptions written before are treated as disabled`],
    ['updated', view.updatedAt ?? '-'],
    ['subscriptions', view.subscriptions.map(({ id, state, isGone }) => `${id}  ${state}${isGone ? ', but gone' : ''}`).join('\n') || 'none'],
    ['waiting', waiting === null ? 'not counted' : waiting.map(waitingLine).join('\n') || 'nothing'],
    ['last attempts', attempts.map((one) => lineOfAttempt(one, Date.now())).join('\n') || 'none in what was read'],
  ])
}

const waitingLine = ({ topic, records, nextDueAt }: Waiting): string =>
  `${records} in ${topic}${nextDueAt === null ? '' : `, the first due ${timeText(nextDueAt)}`}`

const scoreText = (score: number | null): string => (score === null ? '-' : score.toFixed(2))
const sumOf = (waiting: EndpointRow['waiting']): number => (waiting ?? []).reduce((sum, { records }) => sum + records, 0)

/** All subscriptions of an endpoint have one URL. */
const hostsOf = ([first]: readonly StoredSubscription[]): string | null => (first ? hostOf(first.url) : null)
