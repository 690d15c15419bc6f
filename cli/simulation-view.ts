import { inWords } from '../shared/contract/words.ts'
import { deliveredShare } from '../shared/domain/delivered-share.ts'
import { formatDuration } from '../shared/domain/duration.ts'
import type { Policy } from '../shared/domain/policy.ts'
import { peaksByColumn, type Measured } from '../shared/simulation/measure.ts'
import type { SimulatedFailure, SimulationModel } from '../shared/simulation/model.ts'
import type { Output } from './output.ts'
import { axis, plot } from './simulation-plot.ts'
import { describeRetries } from './subscription-view.ts'
import { alignColumns, type Column } from './table-text.ts'

/** One run: its measures, and the requests that the endpoint saw, ms after the outage. */
export type SimulatedRun = { readonly measured: Measured; readonly requests: readonly number[] }

const columnsInJson = 120
const narrowest = 30
const widest = 120
/** What stands beside the bars. */
const besideBars = 34

export function printSimulation(output: Output, model: SimulationModel, policy: Policy, runs: readonly SimulatedRun[]): void {
  if (output.format !== 'table') return output.record(asJson(model, policy, runs), [])
  const columns = Math.max(narrowest, Math.min(widest, (process.stdout.columns ?? 100) - besideBars))
  output.text([
    `${sentenceOf(model)}\n${describeRetries(policy)}\n`,
    alignColumns(runs.map(({ measured }) => measured), tableColumns(policy), (title) => output.style('bold', title)),
    ...formulaLines(model, policy),
    plotOf(model, runs, columns),
  ].join('\n'))
}

function sentenceOf({ deliveries, overMs, outageMs, availability, failure, latencyMs, seed }: SimulationModel): string {
  const routed = overMs === 0 ? 'routed at once' : `routed over ${formatDuration(overMs)}`
  const outage = outageMs === 0 ? 'no outage' : `from the beginning of an outage of ${formatDuration(outageMs)} (${failureOf(failure)})`
  const after = availability === 1 ? 'every attempt succeeds' : `each attempt succeeds with probability ${availability}`
  return `${count(deliveries)} deliveries ${routed}, ${outage}; ${outageMs === 0 ? '' : 'after it '}${after} in ${formatDuration(latencyMs)}; seed ${seed}`
}

const failureOf = (failure: SimulatedFailure): string => (typeof failure === 'number' ? `http_${failure}` : failure)
const count = (value: number): string => value.toLocaleString('en-US')
const percent = (share: number): string => `${Number((share * 100).toFixed(2))} %`

function tableColumns(policy: Policy): readonly Column<Measured>[] {
  return [
    { title: 'JITTER', text: ({ jitter }) => (jitter === policy.jitter ? `${jitter} *` : jitter) },
    { title: 'DELIVERED', text: ({ deliveredShare: share }) => percent(share), align: 'right' },
    { title: '95 % INTERVAL', text: ({ interval }) => interval.map((share) => percent(share).slice(0, -2)).join(' - '), align: 'right' },
    { title: 'DEAD', text: ({ dead }) => count(Object.values(dead).reduce((sum, one) => sum + one)), align: 'right' },
    { title: 'P50', text: ({ timeToDeliveryMs }) => (timeToDeliveryMs ? inWords(timeToDeliveryMs.p50) : '-'), align: 'right' },
    { title: 'P99', text: ({ timeToDeliveryMs }) => (timeToDeliveryMs ? inWords(timeToDeliveryMs.p99) : '-'), align: 'right' },
    { title: 'ATTEMPTS', text: ({ attempts }) => attempts.mean.toFixed(2), align: 'right' },
    { title: 'P99', text: ({ attempts }) => String(attempts.p99), align: 'right' },
    { title: 'PEAK/S', text: ({ requests }) => count(requests.peakPerSecond), align: 'right' },
    { title: 'BUSIEST MIN', text: ({ requests }) => count(requests.busiestMinute), align: 'right' },
  ]
}

/** The formula holds where attempts are independent, which an outage is not. */
function formulaLines(model: SimulationModel, { maxAttempts }: Policy): readonly string[] {
  const lines = ['* the policy\'s own; none: without jitter, for comparison. P50 and P99: time to delivery, and attempts, of a delivery.']
  if (model.outageMs === 0) lines.push(`1 - (1 - ${model.availability})^${maxAttempts} = ${percent(deliveredShare(model.availability, maxAttempts))}`)
  return [`${lines.join('\n')}\n`]
}

function plotOf({ outageMs }: SimulationModel, runs: readonly SimulatedRun[], columns: number): string {
  const spanMs = Math.max(...runs.map(({ measured }) => measured.requests.lastMs)) + 1
  if (runs.every(({ requests }) => requests.length === 0)) return 'No request comes after the outage.\n'
  const columnMs = Math.max(1_000, Math.ceil(spanMs / columns))
  const rows = runs.map(({ measured, requests }) => ({
    label: measured.jitter, peaks: peaksByColumn(requests, columnMs, columns), note: `at most ${count(measured.requests.peakPerSecond)}/s`,
  }))
  const labelWidth = Math.max(...rows.map(({ label }) => label.length))
  const since = (ms: number): string => (ms === 0 ? '0' : `+${inWords(ms)}`)
  return [
    `Requests a second, ${outageMs === 0 ? 'from the first on' : 'from the end of the outage on'}: the busiest second of each ${inWords(columnMs)}, on a logarithmic scale`,
    plot(rows), axis(labelWidth, columns, [since(0), since((columnMs * columns) / 2), since(columnMs * columns)]), '',
  ].join('\n')
}

function asJson(model: SimulationModel, policy: Policy, runs: readonly SimulatedRun[]): object {
  const spanMs = Math.max(...runs.map(({ measured }) => measured.requests.lastMs)) + 1
  const columnMs = Math.max(1_000, Math.ceil(spanMs / columnsInJson))
  return {
    model,
    policy: { ...policy, statusClasses: [...policy.statusClasses].map(([status, failureClass]) => ({ status, class: failureClass })) },
    formula: model.outageMs === 0 ? { availability: model.availability, attempts: policy.maxAttempts, share: deliveredShare(model.availability, policy.maxAttempts) } : null,
    runs: runs.map(({ measured, requests }) => ({
      ...measured, isOwn: measured.jitter === policy.jitter,
      requests: { ...measured.requests, columnMs, peaksPerSecond: peaksByColumn(requests, columnMs, columnsInJson) },
    })),
  }
}
