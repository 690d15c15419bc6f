import { alertRules, describeAlertCondition, lateAfterSeconds, type AlertName, type AlertRule } from '../../shared/domain/alert-rules.ts'
import { formatDuration } from '../../shared/domain/duration.ts'

/** One rule as Prometheus reads it. */
export type PrometheusRule = {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** Each process is told apart by these; the service's name is only in `posthouse_build_info`. */
const withService = '* on (job, instance) group_left (service) posthouse_build_info'

/**
 * The measure of each alert, to be compared with its threshold (which binds tighter than `or` and `and`). `job` stays, so that two
 * installations scraped as two jobs are not added up.
 * What the admin service says is said by each of its processes about everything: their greatest, never their sum.
 */
const measures: Readonly<Record<AlertName, (window: string) => string>> = {
  PosthouseExhaustionRateHigh: (window) =>
    `sum by (job) (increase(posthouse_dead_letters_total{reason="exhausted"}[${window}])) / `
    + `(sum by (job) (increase(posthouse_delivery_duration_seconds_count[${window}])) + sum by (job) (increase(posthouse_dead_letters_total[${window}])))`,
  PosthouseDeadLetterDepthHigh: () => 'max by (job) (sum without (reason) (posthouse_dead_letters_depth))',
  // Counted where they are written: the depth also falls by replays, and rises when an admin process has just started.
  PosthouseDeadLettersGrowing: (window) => `60 * sum by (job) (rate(posthouse_dead_letters_total[${window}]))`,
  PosthouseEventsRoutedLate: (window) => shareAbove('posthouse_routing_duration_seconds', lateAfterSeconds.routing, window),
  PosthouseDeliveriesLate: (window) => shareAbove('posthouse_attempt_start_delay_seconds', lateAfterSeconds.attempt, window),
  PosthouseRetriesLate: (window) => shareAbove('posthouse_retry_due_lateness_seconds', lateAfterSeconds.retry, window),
  PosthouseTierOverdue: () => 'max by (job, tier) (posthouse_retry_overdue_seconds or posthouse_unowned_tier_overdue)',
  PosthouseTierWithoutReader: () => 'max by (job, tier) (posthouse_unowned_tier_depth)',
  PosthouseTopicWithoutReader: () => 'max by (job, group, topic) (posthouse_unowned_lag)',
  PosthouseLagGrowing: (window) =>
    `(sum by (job, service) (posthouse_consumer_lag_records ${withService})`
    + ` and sum by (job, service) (deriv(posthouse_consumer_lag_records[${window}]) ${withService}) > 0)`,
  PosthouseEventsRejected: (window) => `sum by (job, reason) (increase(posthouse_events_rejected_total[${window}]))`,
  PosthouseRecordsUnreadable: (window) =>
    `(sum by (job) (increase(posthouse_deliveries_rejected_total[${window}])) or sum by (job, tier) (increase(posthouse_retry_rejected_total[${window}])))`,
  PosthousePartitionsStalled: () => '(posthouse_consumer_stalled_partitions or posthouse_retry_stalled_partitions)',
  PosthouseHeartbeatOld: () => `(${neverIsOld('posthouse_consumer_heartbeat_age_seconds')} or ${neverIsOld('posthouse_retry_heartbeat_age_seconds')})`,
  PosthouseTableOld: () => neverIsOld('posthouse_table_age_seconds'),
  PosthouseClockSkewed: () => 'abs(posthouse_broker_clock_skew_seconds)',
  PosthouseFaults: (window) => `sum by (job) (increase(posthouse_faults_total[${window}]))`,
  PosthouseTargetDown: () => 'up{job=~".*posthouse.*"}',
  PosthouseServiceMissing: () =>
    `(${['router', 'delivery', 'retry-tier'].map((service) => `0 * absent(posthouse_build_info{service="${service}"})`).join(' or ')})`,
}

/** `posthouse contract` and this file show the same rules; `runbook` is where docs/runbook.md can be read. */
export function prometheusRules(runbook = 'docs/runbook.md'): readonly PrometheusRule[] {
  return alertRules.map((rule: AlertRule & { readonly name: AlertName }) => ({
    alert: rule.name,
    expr: `${measures[rule.name](formatDuration(rule.windowMs))} ${rule.fires === 'above' ? '>' : '<'} ${rule.threshold}`,
    ...(rule.forMs > 0 ? { for: formatDuration(rule.forMs) } : {}),
    labels: { severity: rule.severity },
    annotations: {
      summary: rule.meaning,
      description: `${capitalised(rule.measure)}: ${valueOf(rule)}; fires ${describeAlertCondition(rule)}.`,
      runbook_url: `${runbook}#${rule.name.toLowerCase()}`,
    },
  }))
}

/** Prometheus 3 writes the edge 60 as 60.0. */
function shareAbove(histogram: string, edge: number, window: string): string {
  return `1 - sum by (job) (rate(${histogram}_bucket{le=~"${edge}(\\\\.0)?"}[${window}])) / sum by (job) (rate(${histogram}_count[${window}]))`
}

/** The services say -1 for what has not happened yet. */
function neverIsOld(metric: string): string {
  return `(${metric} >= 0 or ${metric} + Inf)`
}

function valueOf({ unit }: AlertRule): string {
  return unit === 'share' ? '{{ $value | humanizePercentage }}' : unit === 'seconds' ? '{{ $value | humanizeDuration }}' : '{{ $value | humanize }}'
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
