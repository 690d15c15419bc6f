import type { AlertName } from '../../shared/domain/alert-rules.ts'

type Labels = Readonly<Record<string, string>>

export type AlertCase = {
  readonly alert: AlertName
  readonly what: string
  /**
   * Values in promtool's notation (`0+5x60`: from 0 on, 5 more each minute, 60 times) by series, in place of those of `healthy` or besides
   * them; null takes one away.
   */
  readonly series: Readonly<Record<string, string | null>>
  /** Labels of what fires at the end, besides `alertname` and `severity`. Nothing else may, of any alert. */
  readonly expected: readonly (readonly [AlertName, Labels])[]
}

/** One minute a step; all tests look at the end. */
export const steps = 40
const always = (value: number): string => `${value}+0x${steps}`
/** A counter that rises by so much a minute. */
const rising = (perMinute: number): string => `0+${perMinute}x${steps}`
/** One value, and in the last minutes another. */
const lately = (before: number, minutes: number, after: number): string => `${before}+0x${steps - minutes} ${after}+0x${minutes - 1}`
/** A counter that has risen by so much a minute in the last minutes. */
const latelyRising = (minutes: number, perMinute: number): string => `0+0x${steps - minutes} ${perMinute}+${perMinute}x${minutes - 1}`

const seriesOf = (instance: string) => (name: string, labels = ''): string =>
  `${name}{job="posthouse", instance="${instance}:9400"${labels === '' ? '' : `, ${labels}`}}`
const router = seriesOf('router')
const delivery = seriesOf('delivery')
const retryTier = seriesOf('retry-tier')
const admin = seriesOf('admin')

const delivered = delivery('posthouse_delivery_duration_seconds_count')
const deadOf = (reason: string): string => delivery('posthouse_dead_letters_total', `reason="${reason}"`)
const exhausted = deadOf('exhausted')
const depth = admin('posthouse_dead_letters_depth', 'reason="exhausted"')
const routedInTime = router('posthouse_routing_duration_seconds_bucket', 'le="60"')
const begunInTime = delivery('posthouse_attempt_start_delay_seconds_bucket', 'le="60"')
const begunInTimeAs3 = delivery('posthouse_attempt_start_delay_seconds_bucket', 'le="60.0"')
const backInTime = retryTier('posthouse_retry_due_lateness_seconds_bucket', 'le="120"')
const back = retryTier('posthouse_retry_due_lateness_seconds_count')
const overdue = retryTier('posthouse_retry_overdue_seconds', 'tier="1m"')
const unownedOverdue = admin('posthouse_unowned_tier_overdue', 'tier="1m"')
const unownedDepth = admin('posthouse_unowned_tier_depth', 'tier="1m"')
const unownedLag = admin('posthouse_unowned_lag', 'group="posthouse.router", topic="webhooks.events"')
const lag = delivery('posthouse_consumer_lag_records')
const stalled = delivery('posthouse_consumer_stalled_partitions')
const tierStalled = retryTier('posthouse_retry_stalled_partitions', 'tier="1m"')
const heartbeat = delivery('posthouse_consumer_heartbeat_age_seconds')
const tierHeartbeat = retryTier('posthouse_retry_heartbeat_age_seconds', 'tier="1m"')
const table = delivery('posthouse_table_age_seconds', 'table="subscriptions"')
const skew = delivery('posthouse_broker_clock_skew_seconds')
const rejected = router('posthouse_events_rejected_total', 'reason="not_json"')
const unreadable = delivery('posthouse_deliveries_rejected_total', 'reason="unreadable"')
const tierUnreadable = retryTier('posthouse_retry_rejected_total', 'tier="1m", reason="unreadable"')
const faults = delivery('posthouse_faults_total')
const build = (of: typeof router, service: string): string => of('posthouse_build_info', `service="${service}", version="1"`)

/** An installation that is well: about a thousand deliveries a minute, a few of which die. Another job's target is down. */
export const healthy: Readonly<Record<string, string>> = {
  [router('up')]: always(1), [delivery('up')]: always(1), [retryTier('up')]: always(1), 'up{job="node", instance="other:9100"}': always(0),
  [build(router, 'router')]: always(1), [build(delivery, 'delivery')]: always(1), [build(retryTier, 'retry-tier')]: always(1),
  [delivered]: rising(1_000), [exhausted]: rising(40), [deadOf('permanent_failure')]: rising(20),
  [depth]: always(700), [admin('posthouse_dead_letters_depth', 'reason="gone"')]: always(300),
  // Each process of admin says it all.
  [seriesOf('admin-2')('posthouse_dead_letters_depth', 'reason="exhausted"')]: always(700),
  [seriesOf('admin-2')('posthouse_dead_letters_depth', 'reason="gone"')]: always(300),
  [routedInTime]: rising(990), [router('posthouse_routing_duration_seconds_count')]: rising(1_000),
  [begunInTime]: rising(990), [delivery('posthouse_attempt_start_delay_seconds_count')]: rising(1_000),
  [backInTime]: rising(1_000), [back]: rising(1_000),
  [overdue]: always(2), [unownedOverdue]: always(0), [unownedDepth]: always(0), [unownedLag]: always(0),
  [router('posthouse_consumer_lag_records')]: always(0), [lag]: always(500),
  [stalled]: always(0), [tierStalled]: always(0), [heartbeat]: always(0.5), [tierHeartbeat]: always(0.5),
  [table]: always(0.2), [delivery('posthouse_table_age_seconds', 'table="endpoint-health"')]: always(0.2), [skew]: always(-0.2),
  [rejected]: always(3), [unreadable]: always(0), [tierUnreadable]: always(0), [faults]: always(2), [router('posthouse_faults_total')]: always(0),
}

const ofJob = { job: 'posthouse' }
const ofDelivery = { job: 'posthouse', instance: 'delivery:9400' }
const ofTier = { job: 'posthouse', tier: '1m' }
const ofTierProcess = { ...ofTier, instance: 'retry-tier:9400' }

const withoutDelivery: AlertCase['series'] = {
  ...Object.fromEntries(Object.keys(healthy).filter((series) => series.includes('"delivery:9400"')).map((series) => [series, null])),
  [delivery('up')]: always(0),
}

const fires = (alert: AlertName, what: string, series: AlertCase['series'], labels: Labels): AlertCase => ({ alert, what, series, expected: [[alert, labels]] })
const isSilent = (alert: AlertName, what: string, series: AlertCase['series']): AlertCase => ({ alert, what, series, expected: [] })

/** For each alert at least one case in which it fires and one, near to it, in which it must not. */
export const alertCases: readonly AlertCase[] = [
  fires('PosthouseExhaustionRateHigh', '60 of 1,080 a minute', { [exhausted]: rising(60) }, ofJob),
  isSilent('PosthouseExhaustionRateHigh', '50 of 1,070 a minute', { [exhausted]: rising(50) }),
  isSilent('PosthouseExhaustionRateHigh', 'others than exhausted ones', { [deadOf('expired')]: latelyRising(3, 35) }),
  isSilent('PosthouseExhaustionRateHigh', 'nothing is settled', { [exhausted]: always(9), [delivered]: always(9), [deadOf('permanent_failure')]: always(9) }),
  isSilent('PosthouseExhaustionRateHigh', 'more than 5 minutes ago', { [exhausted]: '0+0x20 90+90x5 540+0x13' }),
  fires('PosthouseDeadLetterDepthHigh', '1,001', { [depth]: always(701) }, ofJob),
  isSilent('PosthouseDeadLetterDepthHigh', 'replayed since', { [depth]: lately(5_000, 2, 10) }),
  fires('PosthouseDeadLettersGrowing', '101 a minute', { [deadOf('gone')]: latelyRising(5, 41) }, ofJob),
  isSilent('PosthouseDeadLettersGrowing', '99 a minute', { [deadOf('gone')]: latelyRising(5, 39) }),
  isSilent('PosthouseDeadLettersGrowing', 'the depth jumps, as admin was started', { [depth]: '0+0x35 600+0x4' }),
  fires('PosthouseEventsRoutedLate', '6 % late', { [routedInTime]: rising(940) }, ofJob),
  isSilent('PosthouseEventsRoutedLate', '4 % late', { [routedInTime]: rising(960) }),
  fires('PosthouseDeliveriesLate', '6 % late', { [begunInTime]: rising(940) }, ofJob),
  fires('PosthouseDeliveriesLate', '6 % late, with the edge as Prometheus 3 names it', { [begunInTime]: null, [begunInTimeAs3]: rising(940) }, ofJob),
  isSilent('PosthouseDeliveriesLate', '4 % late', { [begunInTime]: rising(960) }),
  fires('PosthouseRetriesLate', '2 % late', { [backInTime]: rising(980) }, ofJob),
  isSilent('PosthouseRetriesLate', 'no retries', { [backInTime]: always(5), [back]: always(9) }),
  fires('PosthouseTierOverdue', 'its owner does not move it', { [overdue]: lately(0, 5, 150) }, ofTier),
  fires('PosthouseTierOverdue', 'nobody owns it', { [unownedOverdue]: lately(0, 5, 150) }, ofTier),
  isSilent('PosthouseTierOverdue', 'for a minute', { [overdue]: lately(0, 2, 150) }),
  isSilent('PosthouseTierOverdue', '100 s', { [overdue]: always(100) }),
  fires('PosthouseTierWithoutReader', 'one record', { [unownedDepth]: lately(0, 7, 1) }, ofTier),
  isSilent('PosthouseTierWithoutReader', 'while processes are replaced', { [unownedDepth]: lately(0, 4, 900) }),
  fires('PosthouseTopicWithoutReader', 'one record', { [unownedLag]: lately(0, 7, 1) }, { ...ofJob, group: 'posthouse.router', topic: 'webhooks.events' }),
  isSilent('PosthouseTopicWithoutReader', 'while processes are replaced', { [unownedLag]: lately(0, 4, 900) }),
  fires('PosthouseLagGrowing', '500 more a minute', { [lag]: rising(500) }, { ...ofJob, service: 'delivery' }),
  isSilent('PosthouseLagGrowing', 'large, and being worked off', { [lag]: `90000-500x${steps}` }),
  isSilent('PosthouseLagGrowing', 'growing, and small', { [lag]: rising(200) }),
  fires('PosthouseEventsRejected', 'one', { [rejected]: lately(3, 10, 4) }, { ...ofJob, reason: 'not_json' }),
  isSilent('PosthouseEventsRejected', 'half an hour ago', { [rejected]: lately(3, 30, 4) }),
  fires('PosthouseRecordsUnreadable', 'a delivery', { [unreadable]: lately(0, 5, 1) }, ofJob),
  fires('PosthouseRecordsUnreadable', 'a record of a tier', { [tierUnreadable]: lately(0, 5, 1) }, ofTier),
  isSilent('PosthouseRecordsUnreadable', 'half an hour ago', { [unreadable]: lately(0, 30, 1) }),
  fires('PosthousePartitionsStalled', 'one of delivery', { [stalled]: lately(0, 4, 1) }, ofDelivery),
  fires('PosthousePartitionsStalled', 'one of a tier', { [tierStalled]: lately(0, 4, 1) }, ofTierProcess),
  isSilent('PosthousePartitionsStalled', 'for a minute', { [stalled]: lately(0, 2, 1) }),
  fires('PosthouseHeartbeatOld', '31 s', { [heartbeat]: lately(0, 3, 31) }, ofDelivery),
  fires('PosthouseHeartbeatOld', 'never, in a tier', { [tierHeartbeat]: always(-1) }, ofTierProcess),
  isSilent('PosthouseHeartbeatOld', 'not yet', { [heartbeat]: lately(0, 1, -1) }),
  isSilent('PosthouseHeartbeatOld', '29 s', { [heartbeat]: always(29) }),
  fires('PosthouseTableOld', '11 s', { [table]: lately(0, 3, 11) }, { ...ofDelivery, table: 'subscriptions' }),
  fires('PosthouseTableOld', 'never read', { [table]: always(-1) }, { ...ofDelivery, table: 'subscriptions' }),
  isSilent('PosthouseTableOld', '9 s', { [table]: always(9) }),
  fires('PosthouseClockSkewed', '31 s behind', { [skew]: always(-31) }, ofDelivery),
  isSilent('PosthouseClockSkewed', '29 s ahead', { [skew]: always(29) }),
  fires('PosthouseFaults', 'one', { [faults]: lately(2, 10, 3) }, ofJob),
  isSilent('PosthouseFaults', 'half an hour ago', { [faults]: lately(2, 30, 3) }),
  fires('PosthouseTargetDown', 'one of several', { [seriesOf('delivery-2')('up')]: lately(1, 4, 0) }, { ...ofJob, instance: 'delivery-2:9400' }),
  isSilent('PosthouseTargetDown', 'for a minute', { [delivery('up')]: lately(1, 2, 0) }),
  {
    alert: 'PosthouseServiceMissing', what: 'no delivery at all', series: withoutDelivery,
    expected: [['PosthouseServiceMissing', { service: 'delivery' }], ['PosthouseTargetDown', ofDelivery]],
  },
  isSilent('PosthouseServiceMissing', 'for four minutes', { [build(router, 'router')]: `1+0x${steps - 4} stale` }),
]
