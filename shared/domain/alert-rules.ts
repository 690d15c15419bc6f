import { formatDuration } from './duration.ts'

/** `critical`: deliveries are not made now, or soon will be lost sight of. `high`: today. `warning`: look into it. */
export type AlertSeverity = 'critical' | 'high' | 'warning'

/** How the number of a rule is read. `share` is a part of 1, `per minute` a number of records each minute. */
export type AlertUnit = 'share' | 'records' | 'per minute' | 'seconds' | 'partitions' | 'faults' | 'processes'

/** One alert as data: what is measured, and from where on it is too much. The expression Prometheus evaluates is made of it. */
export type AlertRule = {
  readonly name: string
  readonly severity: AlertSeverity
  /** What is measured, to be followed by the condition: "unread records of a group: above 10000 records for 10m". */
  readonly measure: string
  readonly fires: 'above' | 'below'
  readonly threshold: number
  readonly unit: AlertUnit
  /** Span the measure looks back over, ms; 0: it is the present value. */
  readonly windowMs: number
  /** How long the condition must hold before the alert fires, ms. */
  readonly forMs: number
  /** What it means when it fires, in a sentence. */
  readonly meaning: string
}

const secondMs = 1_000
const minuteMs = 60 * secondMs

/** From when on something counts as late, seconds. Each must be an edge of the histogram it is read from. */
export const lateAfterSeconds = {
  /** An event of which a delivery was not written yet. */
  routing: 60,
  /** A delivery that could be read and whose attempt had not begun. */
  attempt: 60,
  /** A retry behind its due time: a tier may take 60 s and a poll. */
  retry: 120,
} as const

/** Every alert, and the only place where their thresholds stand. The first three are those of the retry contract. */
export const alertRules = [
  {
    name: 'PosthouseExhaustionRateHigh', severity: 'high',
    measure: 'exhausted deliveries as a share of all that were settled',
    fires: 'above', threshold: 0.05, unit: 'share', windowMs: 5 * minuteMs, forMs: 0,
    meaning: 'Many deliveries use up all their attempts: endpoints have been down for days, or refuse what is sent.',
  },
  {
    name: 'PosthouseDeadLetterDepthHigh', severity: 'high',
    measure: 'dead letters that were neither replayed nor discarded',
    fires: 'above', threshold: 1_000, unit: 'records', windowMs: 0, forMs: 0,
    meaning: 'Dead letters pile up that nobody looks at; each is deleted after 30 days.',
  },
  {
    name: 'PosthouseDeadLettersGrowing', severity: 'critical',
    measure: 'new dead letters', fires: 'above', threshold: 100, unit: 'per minute', windowMs: 2 * minuteMs, forMs: 0,
    meaning: 'Something that concerns many deliveries at once has broken: an endpoint of many subscriptions, a secret, or posthouse itself.',
  },
  {
    name: 'PosthouseEventsRoutedLate', severity: 'high',
    measure: `share of events whose deliveries were written more than ${lateAfterSeconds.routing} s after them`,
    fires: 'above', threshold: 0.05, unit: 'share', windowMs: 10 * minuteMs, forMs: 0,
    meaning: 'The router does not keep up, or Kafka takes its records slowly.',
  },
  {
    name: 'PosthouseDeliveriesLate', severity: 'high',
    measure: `share of attempts that began more than ${lateAfterSeconds.attempt} s after their delivery could be read`,
    fires: 'above', threshold: 0.05, unit: 'share', windowMs: 10 * minuteMs, forMs: 0,
    meaning: 'Deliveries wait for a process or for their turn at a slow endpoint.',
  },
  {
    name: 'PosthouseRetriesLate', severity: 'high',
    measure: `share of retries that came back more than ${lateAfterSeconds.retry} s after they were due`,
    fires: 'above', threshold: 0.01, unit: 'share', windowMs: 10 * minuteMs, forMs: 0,
    meaning: 'Retry-tier does not keep up, or was away for a while.',
  },
  {
    name: 'PosthouseTierOverdue', severity: 'high',
    measure: 'time a record of a tier has been ready without being written onward',
    fires: 'above', threshold: 120, unit: 'seconds', windowMs: 0, forMs: 2 * minuteMs,
    meaning: 'A tier has stopped: its retries wait although they are due.',
  },
  {
    name: 'PosthouseTierWithoutReader', severity: 'critical',
    measure: 'records in partitions of a tier that no process owns',
    fires: 'above', threshold: 0, unit: 'records', windowMs: 0, forMs: 5 * minuteMs,
    meaning: 'Retries wait in a tier that nobody reads.',
  },
  {
    name: 'PosthouseTopicWithoutReader', severity: 'critical',
    measure: 'unread records in partitions that no process of the group owns',
    fires: 'above', threshold: 0, unit: 'records', windowMs: 0, forMs: 5 * minuteMs,
    meaning: 'Events or deliveries wait and nobody reads them.',
  },
  {
    name: 'PosthouseLagGrowing', severity: 'high',
    measure: 'unread records of a service while their number rises',
    fires: 'above', threshold: 10_000, unit: 'records', windowMs: 10 * minuteMs, forMs: 10 * minuteMs,
    meaning: 'More comes in than is worked off.',
  },
  {
    name: 'PosthouseEventsRejected', severity: 'warning',
    measure: 'events that could not be read', fires: 'above', threshold: 0, unit: 'records', windowMs: 15 * minuteMs, forMs: 0,
    meaning: 'A producer writes what is no event; nobody receives it.',
  },
  {
    name: 'PosthouseRecordsUnreadable', severity: 'high',
    measure: 'records of deliveries and retry topics that could not be read',
    fires: 'above', threshold: 0, unit: 'records', windowMs: 15 * minuteMs, forMs: 0,
    meaning: 'Somebody else writes to topics of posthouse, or a record was damaged.',
  },
  {
    name: 'PosthousePartitionsStalled', severity: 'critical',
    measure: 'partitions that do not move although nothing holds them',
    fires: 'above', threshold: 0, unit: 'partitions', windowMs: 0, forMs: 2 * minuteMs,
    meaning: 'A consumer reads a partition no further; what is behind in it waits for ever.',
  },
  {
    name: 'PosthouseHeartbeatOld', severity: 'high',
    measure: 'age of a consumer\'s last heartbeat', fires: 'above', threshold: 30, unit: 'seconds', windowMs: 0, forMs: minuteMs,
    meaning: 'A process has lost its group or never joined it, and does nothing.',
  },
  {
    name: 'PosthouseTableOld', severity: 'critical',
    measure: 'age of a followed table', fires: 'above', threshold: 10, unit: 'seconds', windowMs: 0, forMs: minuteMs,
    meaning: 'A process does not know the present subscriptions or health, so it begins nothing.',
  },
  {
    name: 'PosthouseClockSkewed', severity: 'warning',
    measure: 'difference between the clocks of a process and of the brokers',
    fires: 'above', threshold: 30, unit: 'seconds', windowMs: 0, forMs: 5 * minuteMs,
    meaning: 'Signatures carry a wrong time; receivers refuse them from 300 s on.',
  },
  {
    name: 'PosthouseFaults', severity: 'high',
    measure: 'faults of posthouse itself', fires: 'above', threshold: 0, unit: 'faults', windowMs: 15 * minuteMs, forMs: 0,
    meaning: 'A bug; a record that brings it out three times becomes a dead letter or is rejected.',
  },
  {
    name: 'PosthouseTargetDown', severity: 'high',
    measure: 'processes of a target that answer',
    fires: 'below', threshold: 1, unit: 'processes', windowMs: 0, forMs: 2 * minuteMs,
    meaning: 'A process cannot be scraped: it is down, or hangs.',
  },
  {
    name: 'PosthouseServiceMissing', severity: 'critical',
    measure: 'processes of router, delivery or retry-tier that answer',
    fires: 'below', threshold: 1, unit: 'processes', windowMs: 0, forMs: 5 * minuteMs,
    meaning: 'A service has no process at all: events wait, or deliveries, or retries.',
  },
] as const satisfies readonly AlertRule[]

export type AlertName = (typeof alertRules)[number]['name']

/** The condition in words: `above 5 % over 5m`, `above 10000 records over 10m, for 10m`. */
export function describeAlertCondition({ fires, threshold, unit, windowMs, forMs }: AlertRule): string {
  const number = unit === 'share' ? `${threshold * 100} %`
    : unit === 'per minute' ? `${threshold} a minute`
    : unit === 'seconds' ? `${threshold} s`
    : threshold === 1 && unit === 'processes' ? '1 process'
    : `${threshold} ${unit}`
  return [`${fires} ${number}${windowMs > 0 ? ` over ${formatDuration(windowMs)}` : ''}`, ...(forMs > 0 ? [`for ${formatDuration(forMs)}`] : [])].join(', ')
}
