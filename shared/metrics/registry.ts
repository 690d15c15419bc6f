import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Label names with the values known beforehand; every combination then exists from the start at 0. An empty list: values are not known. */
export type Labels<Name extends string> = Readonly<Record<Name, readonly string[]>>

type Described<Name extends string> = { readonly name: string; readonly help: string; readonly labels?: Labels<Name> }

/** The registry of one process and the only way to make series in it: names, help and labels are checked when they are made. */
export type Metrics = {
  readonly registry: Registry
  /** `total`: what is counted elsewhere, looked at when it is scraped. */
  counter<Name extends string = never>(described: Described<Name> & { readonly total?: () => number }): Counter<Name>
  /** `collect` runs at each scrape, for values that are only looked at then. */
  gauge<Name extends string = never>(described: Described<Name> & { readonly collect?: (gauge: Gauge<Name>) => void }): Gauge<Name>
  histogram<Name extends string = never>(described: Described<Name> & { readonly buckets: readonly number[] }): Histogram<Name>
}

/** Labels that grow with customers or traffic, or show who a customer is: a registry with them eats the memory of whoever scrapes it. */
const forbiddenLabel = /^(url|uri|host|endpoint|endpoint_key|tenant|subscription|delivery|event|secret|.*_id|id)$/
const mostSeries = 2_000

/** A registry with the process's own metrics (CPU, memory, event loop delay, garbage collection) and `posthouse_build_info`. */
export const createMetrics = ({ version, service }: { version: string; service: string }): Metrics => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics: Metrics = {
    registry,
    counter: (described) => {
      check(described, /_total$/, 'a counter ends in _total')
      const { total } = described
      const counter = new Counter({ ...baseOf(described), registers: [registry], ...(total ? { collect() { readTotal(counter, total()) } } : {}) })
      for (const labels of combinations(described.labels)) counter.inc(labels, 0)
      return counter
    },
    gauge: (described) => {
      check(described, /(?<!_total)$/, 'a gauge does not end in _total')
      const { collect } = described
      const gauge = new Gauge({ ...baseOf(described), registers: [registry], ...(collect ? { collect() { collect(gauge) } } : {}) })
      for (const labels of combinations(described.labels)) gauge.set(labels, 0)
      return gauge
    },
    histogram: (described) => {
      check(described, /_(seconds|bytes|records|attempts)$/, 'a histogram ends in its unit: _seconds, _bytes, _records or _attempts')
      const { buckets } = described
      if (buckets.some((edge, index) => index > 0 && edge <= buckets[index - 1]!)) throw new Error(`buckets of ${described.name} must grow`)
      const histogram = new Histogram({ ...baseOf(described), buckets: [...buckets], registers: [registry] })
      for (const labels of combinations(described.labels)) histogram.zero(labels)
      return histogram
    },
  }
  metrics.gauge({ name: 'posthouse_build_info', help: 'Always 1; which version and service this process is.', labels: { version: [version], service: [service] } })
    .set({ version, service }, 1)
  return metrics
}

const baseOf = <Name extends string>({ name, help, labels }: Described<Name>): { name: string; help: string; labelNames: Name[] } =>
  ({ name, help, labelNames: Object.keys(labels ?? {}) as Name[] })

/** Mistakes of ours, found by whatever first starts the service: a test. */
const check = ({ name, help, labels }: Described<string>, ending: RegExp, rule: string): void => {
  if (!/^posthouse_[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name)) throw new Error(`metric ${name}: names are posthouse_ and lower-case words`)
  if (!ending.test(name)) throw new Error(`metric ${name}: ${rule}`)
  if (/_(ms|milliseconds|minutes|kib|mib)(_|$)/.test(name)) throw new Error(`metric ${name}: Prometheus counts in seconds and bytes`)
  if (help.length < 10 || !help.endsWith('.')) throw new Error(`metric ${name}: say in a sentence what it counts`)
  for (const label of Object.keys(labels ?? {})) {
    if (!/^[a-z][a-z0-9_]*$/.test(label)) throw new Error(`metric ${name}: label ${label} is not lower-case words`)
    if (forbiddenLabel.test(label)) throw new Error(`metric ${name}: label ${label} would have a value for each customer or event`)
  }
}

const readTotal = (counter: Counter<never>, total: number): void => {
  counter.reset()
  counter.inc(total)
}

/** Every combination of known label values: an alert on a series that does not exist yet never fires. Nothing where one is not known. */
const combinations = <Name extends string>(labels: Labels<Name> | undefined): Partial<Record<Name, string>>[] => {
  let sets: Partial<Record<Name, string>>[] = [{}]
  for (const [name, values] of Object.entries(labels ?? {}) as [Name, readonly string[]][]) {
    sets = sets.flatMap((set) => values.map((value) => ({ ...set, [name]: value })))
  }
  if (sets.length > mostSeries) throw new Error(`labels ${Object.keys(labels ?? {}).join(', ')} make ${sets.length} series, more than ${mostSeries}`)
  return sets
}
