import { formatDuration } from '../shared/domain/duration.ts'
import type { BytesView, DeadLetterStory, DeadLetterView } from '../shared/dead-letters/view.ts'
import { printable, type Column } from './table-text.ts'

export const deadLetterColumns: readonly Column<DeadLetterView>[] = [
  { title: 'DIED', text: ({ diedAt }) => `${diedAt.slice(0, 19)}Z` },
  { title: 'KEY', text: ({ key }) => key },
  { title: 'REASON', text: ({ reason }) => reason ?? '-' },
  { title: 'LAST', text: lastOf },
  { title: 'ATTEMPTS', text: ({ attempts }) => String(attempts), align: 'right' },
  { title: 'TYPE', text: ({ eventType }) => eventType ?? '-' },
  { title: 'EVENT', text: ({ eventId }) => eventId ?? '-' },
  { title: 'SUBSCRIPTION', text: ({ subscriptionId }) => subscriptionId ?? '-' },
  { title: 'ENDPOINT', text: ({ endpointKey, host }) => [endpointKey ?? '-', host].filter(Boolean).join(' ') },
  { title: '', text: ({ unreadable }) => unreadable ?? '' },
]

function lastOf({ status, error }: Pick<DeadLetterView, 'status' | 'error'>): string {
  return status === null ? (error ?? '-') : `HTTP ${status}`
}

/** The whole story for people: what was to be sent, and every attempt that is kept. */
export function fieldsOf(story: DeadLetterStory): readonly (readonly [label: string, text: string])[] {
  const { origin, subscription, sourceKey, sourceHeaders, body, history, attempts } = story
  const left = attempts - history.length
  const fields: (readonly [label: string, text: string | null])[] = [
    ['key', story.key],
    ['standing', story.standing],
    ['died', `${story.diedAt}  ${story.state}: ${story.reason}${story.reason === 'exhausted' ? ` after ${attempts} attempts` : ''}`],
    ['last', lastOf(story)],
    ['delivery', story.deliveryId],
    ['event', story.eventId],
    ['type', story.eventType],
    ['tenant', story.tenant],
    ['subscription', `${story.subscriptionId}${subscription === null ? '' : `  ${subscription.state} then, for ${subscription.eventTypes.join(' ')}`}`],
    ['description', subscription?.description ?? null],
    ['endpoint', [story.endpointKey, story.host].filter(Boolean).join('  ')],
    ['routed', story.routedAt],
    ['read from', `${origin.topic}/${origin.partition}/${origin.offset} of ${origin.timestamp}`],
    ['source key', sourceKey && textOf(sourceKey)],
    ['headers', sourceHeaders.length === 0 ? null : sourceHeaders.map((header) => `${header.name}: ${textOf(header)}`).join('\n')],
    ['attempts', [...(left > 0 ? [`${left} earlier ones are not kept here`] : []), ...history.map(linesOf)].join('\n') || 'none'],
    ['left out', story.shortened],
    ['body', `${body.bytes} bytes${'base64' in body ? ', no text; as base64' : ''}\n${'base64' in body ? body.base64 : body.text}`],
  ]
  return fields.flatMap(([label, text]) => (text === null ? [] : [[label, multiline(text)] as const]))
}

const textOf = (bytes: BytesView): string => ('text' in bytes ? bytes.text : `${bytes.base64} (base64)`)
const multiline = (text: string): string => text.split('\n').map(printable).join('\n')

function linesOf({ attempt, startedAt, durationMs, status, failureClass, error, excerpt }: DeadLetterStory['history'][number]): string {
  const what = status === null ? error : `HTTP ${status}${error === `http_${status}` ? '' : ` ${error}`}`
  const line = `#${attempt}  ${startedAt}  ${formatDuration(durationMs)}  ${what}  ${failureClass}`
  return excerpt === null || excerpt.trim() === '' ? line : `${line}\n${excerpt.trim().split('\n').map((text) => `  | ${text}`).join('\n')}`
}
