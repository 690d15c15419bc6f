/** Who may rely on what, without reading code: topics, fields of records, metrics, documents. */
export type HandOff = {
  readonly to: 'scheduler' | 'alerting system' | 'implementer' | 'reviewer of dead letters'
  readonly may: string
  readonly topics: readonly string[]
  readonly fields: readonly string[]
  readonly metrics: readonly string[]
  readonly documents: readonly string[]
}

export type HandOffTopics = { readonly attempts: string; readonly dlq: string; readonly health: string; readonly deliveries: string; readonly retryPrefix: string; readonly subscriptions: string }

/** Fields as the schemas name them, metrics as the services export them: a test looks for each. */
export function handOffsOf(topics: HandOffTopics): readonly HandOff[] {
  return [
    {
      to: 'scheduler', may: 'the backoff curve above: when each attempt comes at the earliest and at the latest, and that none comes before its due time',
      topics: [`${topics.retryPrefix}*`, topics.attempts],
      fields: ['Attempt.nextDueAt', 'Attempt.attempt', 'Attempt.startedAt', 'Delivery.attemptsMade', 'Delivery.lastWaitMs'],
      metrics: ['posthouse_retries_scheduled_total', 'posthouse_retry_due_lateness_seconds', 'posthouse_retry_overdue_seconds', 'posthouse_retry_depth_records'],
      documents: [],
    },
    {
      to: 'alerting system', may: 'the alerts above, made of the same table as the rules file; labels never hold an endpoint, a tenant or an id',
      topics: [],
      fields: [],
      metrics: ['posthouse_dead_letters_total', 'posthouse_delivery_duration_seconds', 'posthouse_attempts_total', 'posthouse_retry_overdue_seconds', 'posthouse_table_age_seconds'],
      documents: ['deploy/prometheus/posthouse.rules.yml', 'docs/runbook.md'],
    },
    {
      to: 'implementer', may: 'the classification, the states and the idempotency rules above, and that a delivery counts as done only when Kafka has what follows from it',
      topics: [topics.deliveries, topics.subscriptions, topics.health, topics.attempts],
      fields: ['Delivery.id', 'Delivery.replay', 'Delivery.body', 'Attempt.state', 'Attempt.failureClass', 'Attempt.error', 'Attempt.reason'],
      metrics: ['posthouse_deliveries_cancelled_total', 'posthouse_deliveries_parked_total', 'posthouse_repeats_dropped_total'],
      documents: ['docs/architecture.md', 'schemas/contract.schema.json'],
    },
    {
      to: 'reviewer of dead letters', may: 'that each dead letter has the whole story, stays until it is replayed, discarded or too old, and can be sent again as it was',
      topics: [topics.dlq],
      fields: ['DeadLetter.delivery', 'DeadLetter.reason', 'DeadLetter.state', 'DeadLetter.diedAt', 'DeadLetter.lastStatus', 'DeadLetter.lastError', 'DeadLetter.subscription', 'DeadLetter.shortened'],
      metrics: ['posthouse_dead_letters_total'],
      documents: ['docs/runbook.md'],
    },
  ]
}
