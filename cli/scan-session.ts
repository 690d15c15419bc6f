import { endpointKey } from '../shared/domain/ids.ts'
import { normaliseUrl } from '../shared/domain/endpoint-url.ts'
import { openScanner, type Scanner } from '../shared/kafka/scanner.ts'
import type { Scanned } from '../shared/lookup/scan-account.ts'
import { CliError } from './cli-error.ts'
import type { Context } from './context.ts'
import type { KafkaSession } from './kafka-session.ts'

/** What reads topics as they are now, closed with the session. */
export function openScan(kafka: KafkaSession): Scanner {
  const scanner = openScanner({ connection: kafka.connection })
  kafka.add('the scanner', scanner.close)
  return scanner
}

/** Waits for a look-up and says meanwhile how much it has read. */
export function scanning<Value>(context: Context, what: string, account: Scanned, work: Promise<Value>): Promise<Value> {
  return context.wait(() => `reading ${what}: ${account.records} of ${account.wanted} records`, work)
}

/** On standard error: what an answer rests on. */
export function saySeen({ output }: Context, account: Scanned): void {
  const { partitions, records, unreadable, oldestAt, youngestAt, leftOut } = account
  const where = [...partitions].map(([topic, count]) => `${count} ${count === 1 ? 'partition' : 'partitions'} of ${topic}`).join(', ')
  const when = oldestAt === null || youngestAt === null ? '' : `, of ${timeText(oldestAt)} to ${timeText(youngestAt)}`
  output.warn(`read ${records} of ${account.wanted} records in ${where}${when}`)
  if (unreadable > 0) output.warn(`${unreadable} of them cannot be read: they may be of a newer posthouse`)
  if (leftOut !== null) output.warn(`not everything was looked at: left out was ${leftOut}`)
}

/** Beyond 8.64e15 ms a date has no text. */
export const timeText = (at: number): string => new Date(Math.min(at, 8.64e15)).toISOString()

const keyForm = /^ep_[a-z2-7]{32}$/

/** The key of an endpoint, given as such or as its URL. @throws CliError `usage`; the URL, which may carry a token, is not repeated */
export function endpointKeyOf(text: string): string {
  if (keyForm.test(text)) return text
  const normalised = normaliseUrl(text, { allowHttp: true })
  if (!normalised.ok) throw new CliError('usage', `neither the key of an endpoint (ep_ and 32 characters) nor a URL: ${normalised.reason}`)
  return endpointKey(normalised.url)
}
