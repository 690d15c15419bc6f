import { parseTierSuffix } from '../../shared/domain/hops.ts'
import { sumOf, type MetricSample } from './metrics-text.ts'
import type { Killable } from './options.ts'
import type { SampleServices } from './services.ts'

/** What the services say of themselves. It is shown, and tells when nothing is under way; it is no part of the account. */
export type Progress = {
  readonly routedEvents: number
  /** Deliveries in delivery's window: read and not done. */
  readonly inWindow: number
  readonly inFlight: number
  readonly parked: number
  /** Records that wait, by tier (`1s`, `soon`), shortest first. */
  readonly waiting: readonly { readonly tier: string; readonly count: number }[]
  /** Every service is at work (one that has just been started owns nothing yet), and none has anything unread or unfinished. */
  readonly isIdle: boolean
}

/** Asks all services. One that does not answer, as after a kill, counts as nothing and is not idle. */
export async function readProgress({ metricsOf, isReady }: Pick<SampleServices, 'metricsOf' | 'isReady'>): Promise<Progress> {
  const names = ['router', 'delivery', 'retry-tier'] satisfies Killable[]
  const [answers, areReady] = await Promise.all([Promise.all(names.map(metricsOf)), Promise.all(names.map(isReady))])
  const [router, delivery, retryTier] = answers.map((samples) => samples ?? []) as [MetricSample[], MetricSample[], MetricSample[]]
  const open = [router, delivery, retryTier].reduce((sum, samples) => sum + openIn(samples), 0)
  return {
    routedEvents: sumOf(router, 'posthouse_events_total', { result: 'routed' }),
    inWindow: sumOf(delivery, 'posthouse_window_records'),
    inFlight: sumOf(delivery, 'posthouse_requests_in_flight'),
    parked: sumOf(delivery, 'posthouse_deliveries_parked_total'),
    waiting: retryTier.filter(({ name }) => name === 'posthouse_retry_depth_records')
      .map(({ labels, value }) => ({ tier: labels['tier'] ?? '', count: value }))
      .sort((a, b) => delayOf(a.tier) - delayOf(b.tier)),
    isIdle: open === 0 && areReady.every(Boolean) && answers.every((samples) => samples !== null),
  }
}

const delayOf = (tier: string): number => parseTierSuffix(tier) ?? 0

const openGauges = [
  'posthouse_consumer_lag_records', 'posthouse_window_records', 'posthouse_retry_depth_records', 'posthouse_producer_queued_records',
]

function openIn(samples: readonly MetricSample[]): number {
  return openGauges.reduce((sum, name) => sum + sumOf(samples, name), 0)
}
