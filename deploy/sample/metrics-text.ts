/** One line of what a service answers at /metrics. */
export type MetricSample = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number }

const samplePattern = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const labelPattern = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Reads Prometheus' text format: comments and what is no sample are passed over. */
export function readMetrics(text: string): MetricSample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = samplePattern.exec(line) ?? []
    if (name === undefined) return []
    return [{ name, value: Number(value), labels: Object.fromEntries([...labels.matchAll(labelPattern)].map(([, label, held]) => [label, held])) }]
  })
}

/** The sum of a metric over all of its series, or over those with a label of this value; 0 where there are none. */
export function sumOf(samples: readonly MetricSample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  return samples
    .filter((sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
}
