/** The text of a service's /metrics. @throws when it does not answer 200 */
export async function metricsText(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) })
  if (response.status !== 200) throw new Error(`${url}/metrics answered ${response.status}`)
  return response.text()
}

/** The sum of all series of a metric that carry these labels; 0 where there is none. */
export async function metricOf(url: string, name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  let sum = 0
  for (const line of (await metricsText(url)).split('\n')) {
    const [, found, labelText = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (found === name && Object.entries(labels).every(([key, text]) => `,${labelText}`.includes(`,${key}="${text}"`))) sum += Number(value)
  }
  return sum
}
