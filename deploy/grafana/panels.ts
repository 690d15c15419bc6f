import { alertRules, type AlertName } from '../../shared/domain/alert-rules.ts'

/** A unit of Grafana's. */
export type Unit = 'short' | 's' | 'bytes' | 'percentunit' | 'ops' | 'cpm' | 'none'

export type Query = { readonly expr: string; readonly legend: string }

export type Panel = {
  readonly title: string
  readonly description: string
  readonly unit: Unit
  readonly queries: readonly Query[]
  /** The alert whose threshold is drawn; its unit must be the panel's. */
  readonly alert?: AlertName
  /** `stat`: the present value, large. Default: lines over time. */
  readonly kind?: 'lines' | 'stat' | 'table'
}

export type Row = { readonly title: string; readonly panels: readonly Panel[] }

const job = 'job=~"$job"'
const rate = (metric: string, labels = ''): string => `rate(${metric}{${job}${labels}}[$__rate_interval])`
const now = (metric: string): string => `${metric}{${job}}`
const quantile = (q: number, metric: string, by = ''): string => `histogram_quantile(${q}, sum by (le${by}) (${rate(`${metric}_bucket`)}))`
const quantiles = (metric: string): readonly Query[] => [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, metric), legend: `p${q * 100}` }))
const byLabel = (label: string, expr: string): readonly Query[] => [{ expr: `sum by (${label}) (${expr})`, legend: `{{${label}}}` }]
const perProcess = (expr: string, more = ''): readonly Query[] => [{ expr, legend: `{{instance}}${more}` }]
/** What every process of admin says of the whole: the greatest, not the sum. */
const whole = (label: string, metric: string): readonly Query[] => [{ expr: `max by (${label}) (${now(metric)})`, legend: `{{${label}}}` }]
const ofService = (expr: string): string => `sum by (service) (${expr} * on (job, instance) group_left (service) posthouse_build_info)`
const deliveryEndpoints = `${now('posthouse_endpoints')} and on (job, instance) posthouse_build_info{service="delivery"}`

/** From top to bottom, each row from left to right. */
export const rows: readonly Row[] = [
  {
    title: 'Now', panels: [
      {
        title: 'Delivered', description: 'Successes a second.', unit: 'ops', kind: 'stat',
        queries: [{ expr: `sum(${rate('posthouse_delivery_duration_seconds_count')})`, legend: '' }],
      },
      {
        title: 'Exhausted', description: 'Share of settled deliveries that had used up all their attempts.', unit: 'percentunit', kind: 'stat', alert: 'PosthouseExhaustionRateHigh',
        queries: [{
          expr: `sum(increase(posthouse_dead_letters_total{${job}, reason="exhausted"}[5m])) / `
            + `(sum(increase(posthouse_delivery_duration_seconds_count{${job}}[5m])) + sum(increase(posthouse_dead_letters_total{${job}}[5m])))`,
          legend: '',
        }],
      },
      {
        title: 'Dead letters', description: 'Neither replayed nor discarded.', unit: 'short', kind: 'stat', alert: 'PosthouseDeadLetterDepthHigh',
        queries: [{ expr: `max(sum without (reason) (${now('posthouse_dead_letters_depth')}))`, legend: '' }],
      },
      {
        title: 'Alerts', description: 'Pending and firing alerts of posthouse.', unit: 'none', kind: 'table',
        queries: [{ expr: 'ALERTS{alertname=~"Posthouse.*"}', legend: '' }],
      },
    ],
  },
  {
    title: 'Events', panels: [
      {
        title: 'Events', description: 'Records of the events topics that are done, a second, by what became of them.', unit: 'ops',
        queries: byLabel('result', rate('posthouse_events_total')),
      },
      {
        title: 'Deliveries made', description: 'Deliveries written, a second.', unit: 'ops',
        queries: [{ expr: `sum(${rate('posthouse_deliveries_created_total')})`, legend: 'deliveries' }],
      },
      {
        title: 'Time to route', description: 'From the append of an event to the acknowledgement of its last delivery.', unit: 's',
        queries: quantiles('posthouse_routing_duration_seconds'),
      },
      {
        title: 'Rejected', description: 'Events that could not be read, a second, by reason.', unit: 'ops',
        queries: byLabel('reason', rate('posthouse_events_rejected_total')),
      },
    ],
  },
  {
    title: 'Attempts', panels: [
      {
        title: 'Attempts', description: 'A second, by what their outcome meant.', unit: 'ops',
        queries: byLabel('class', rate('posthouse_attempts_total')),
      },
      {
        title: 'Statuses', description: 'Attempts a second by class of status; none: no response.', unit: 'ops',
        queries: byLabel('status_class', rate('posthouse_attempts_total')),
      },
      {
        title: 'Time of an attempt', description: 'What endpoints take.', unit: 's',
        queries: quantiles('posthouse_attempt_duration_seconds'),
      },
      {
        title: 'Time to delivery', description: 'From routing to the acknowledged success, waits and retries included.', unit: 's',
        queries: quantiles('posthouse_delivery_duration_seconds'),
      },
      {
        title: 'Wait for an attempt', description: 'From the append of a delivery to the start of its attempt.', unit: 's',
        queries: quantiles('posthouse_attempt_start_delay_seconds'),
      },
      {
        title: 'In memory', description: 'Attempts under way, and deliveries that wait for their turn.', unit: 'short',
        queries: [{ expr: `sum(${now('posthouse_requests_in_flight')})`, legend: 'in flight' }, { expr: `sum(${now('posthouse_deliveries_queued')})`, legend: 'queued' }],
      },
      {
        title: 'Parked', description: 'Deliveries sent to wait without an attempt, a second, by reason.', unit: 'ops',
        queries: byLabel('reason', rate('posthouse_deliveries_parked_total')),
      },
      { title: 'Endpoints', description: 'Endpoints in use, by health band.', unit: 'short', queries: byLabel('band', deliveryEndpoints) },
    ],
  },
  {
    title: 'Retries', panels: [
      {
        title: 'Waiting', description: 'Records that wait in each tier.', unit: 'short',
        queries: byLabel('tier', now('posthouse_retry_depth_records')),
      },
      {
        title: 'Retries made', description: 'Failed attempts that will be tried again, a second, by the first tier they wait in.', unit: 'ops',
        queries: byLabel('tier', rate('posthouse_retries_scheduled_total')),
      },
      {
        title: 'Behind the due time', description: 'How late retries come back.', unit: 's',
        queries: quantiles('posthouse_retry_due_lateness_seconds'),
      },
      {
        title: 'Overdue', description: 'How long the record that came up first has been ready.', unit: 's', alert: 'PosthouseTierOverdue',
        queries: [{ expr: `max by (tier) (${now('posthouse_retry_overdue_seconds')})`, legend: '{{tier}}' }],
      },
    ],
  },
  {
    title: 'Dead letters', panels: [
      {
        title: 'New dead letters', description: 'A minute, by reason.', unit: 'cpm', alert: 'PosthouseDeadLettersGrowing',
        queries: [{ expr: `60 * sum by (reason) (rate(posthouse_dead_letters_total{${job}}[2m]))`, legend: '{{reason}}' }],
      },
      {
        title: 'Depth', description: 'Dead letters neither replayed nor discarded, by reason.', unit: 'short', alert: 'PosthouseDeadLetterDepthHigh',
        queries: whole('reason', 'posthouse_dead_letters_depth'),
      },
      {
        title: 'Oldest', description: 'Kafka deletes a dead letter after 30 days.', unit: 's',
        queries: [{ expr: `max(${now('posthouse_dead_letters_oldest_age_seconds')})`, legend: 'oldest' }],
      },
      {
        title: 'Cancelled', description: 'Deliveries no longer wanted, a second, by reason.', unit: 'ops',
        queries: byLabel('reason', rate('posthouse_deliveries_cancelled_total')),
      },
    ],
  },
  {
    title: 'Kafka', panels: [
      {
        title: 'Unread', description: 'Records of owned partitions not read yet, by service.', unit: 'short', alert: 'PosthouseLagGrowing',
        queries: [{ expr: ofService(now('posthouse_consumer_lag_records')), legend: '{{service}}' }],
      },
      {
        title: 'Without a reader', description: 'Records in partitions that no process owns.', unit: 'short', alert: 'PosthouseTopicWithoutReader',
        queries: [...whole('topic', 'posthouse_unowned_lag'), ...whole('tier', 'posthouse_unowned_tier_depth')],
      },
      {
        title: 'Age of tables', description: 'No attempt begins, and no event is matched, with one older than a second.', unit: 's', alert: 'PosthouseTableOld',
        queries: perProcess(now('posthouse_table_age_seconds'), ' {{table}}'),
      },
      {
        title: 'Age of heartbeats', description: 'Since the coordinator last took one.', unit: 's', alert: 'PosthouseHeartbeatOld',
        queries: [...perProcess(now('posthouse_consumer_heartbeat_age_seconds')), ...perProcess(now('posthouse_retry_heartbeat_age_seconds'), ' {{tier}}')],
      },
      {
        title: 'Unacknowledged', description: 'Records that wait for Kafka to take them.', unit: 'short',
        queries: perProcess(now('posthouse_producer_queued_records')),
      },
      {
        title: 'Window', description: 'Memory of what was read and is not done.', unit: 'bytes',
        queries: perProcess(now('posthouse_window_bytes')),
      },
      {
        title: 'Partitions that stand still', description: 'Although nothing holds them.', unit: 'short', alert: 'PosthousePartitionsStalled',
        queries: [...perProcess(now('posthouse_consumer_stalled_partitions')), ...perProcess(now('posthouse_retry_stalled_partitions'), ' {{tier}}')],
      },
      {
        title: 'Joins', description: 'Rebalances of each process, in an hour.', unit: 'short',
        queries: perProcess(`increase(posthouse_consumer_joins_total{${job}}[1h])`),
      },
    ],
  },
  {
    title: 'Processes', panels: [
      { title: 'CPU', description: 'Cores in use.', unit: 'short', queries: perProcess(rate('process_cpu_seconds_total')) },
      { title: 'Memory', description: 'Resident.', unit: 'bytes', queries: perProcess(now('process_resident_memory_bytes')) },
      {
        title: 'Event loop', description: 'Delay of the event loop, 99th percentile.', unit: 's',
        queries: perProcess(now('nodejs_eventloop_lag_p99_seconds')),
      },
      {
        title: 'Clock', description: 'The brokers\' clock minus this machine\'s.', unit: 's',
        queries: perProcess(now('posthouse_broker_clock_skew_seconds')),
      },
    ],
  },
]

/** The number at which the alert of a panel fires. */
export function thresholdOf(alert: AlertName): number {
  const rule = alertRules.find(({ name }) => name === alert)
  if (!rule) throw new Error(`there is no alert ${alert}`)
  return rule.threshold
}
