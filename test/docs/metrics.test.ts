import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Counter, Gauge, Histogram } from 'prom-client'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { createDeliveryMetrics, exportDeliveryGauges } from '../../services/delivery/metrics.ts'
import { createRetryTierMetrics } from '../../services/retry-tier/metrics.ts'
import { createRouterMetrics } from '../../services/router/metrics.ts'
import { exportConsumerSeries, exportProducerSeries, exportTableSeries } from '../../shared/kafka-service/series.ts'
import { createMetrics, type Metrics } from '../../shared/metrics/registry.ts'
import { documents, readme } from './documents.ts'
import { codesIn, tableOf } from './markdown.ts'

/** What values come from; nothing here is ever scraped. */
const never = {} as never

/** As `run` of each service does it. The test below finds a series that is made elsewhere. */
const registrations: Readonly<Record<string, (metrics: Metrics) => void>> = {
  'router'(metrics) {
    createRouterMetrics(metrics)
    exportConsumerSeries(metrics, () => null, 1)
    exportTableSeries(metrics, { subscriptions: () => null })
    exportProducerSeries(metrics, never)
  },
  'delivery'(metrics) {
    createDeliveryMetrics(metrics, [10_000], 60_000)
    exportDeliveryGauges(metrics, never)
    exportConsumerSeries(metrics, () => null, 1)
    exportTableSeries(metrics, { 'subscriptions': () => null, 'endpoint-health': () => null })
    exportProducerSeries(metrics, never)
  },
  'retry-tier'(metrics) {
    createRetryTierMetrics(metrics, () => [])
    exportProducerSeries(metrics, never)
  },
}

type Series = { readonly type: string; readonly labels: readonly string[]; readonly services: readonly string[] }

/** The parts of prom-client's metrics that its types leave out. */
type Registered = (Counter | Gauge | Histogram) & { readonly name: string; readonly type: string; readonly labelNames: readonly string[] }

function registeredSeries(): ReadonlyMap<string, Series> {
  const series = new Map<string, Series>()
  for (const [service, register] of Object.entries(registrations)) {
    const metrics = createMetrics({ version: '1', service })
    register(metrics)
    for (const { name, type, labelNames } of metrics.registry.getMetricsAsArray() as unknown as readonly Registered[]) {
      if (!name.startsWith('posthouse_')) continue
      const known = series.get(name)?.services ?? []
      series.set(name, { type, labels: labelNames, services: [...known, service] })
    }
  }
  return series
}

test('the README has every series that a service exports, with type, labels and services, and no other', () => {
  const everyService = Object.keys(registrations)
  const written = new Map(tableOf(readme, 'Series').rows.map(([name = '', type = '', labels = '', services = '', meaning]): [string, Series] => {
    assert.ok(meaning, `${name} has no meaning`)
    return [codesIn(name)[0] ?? name, { type, labels: codesIn(labels), services: services === 'all' ? everyService : services.split(', ') }]
  }))
  assert.deepEqual(Object.fromEntries(written), Object.fromEntries(registeredSeries()))
})

test('no series is made but by the functions above', () => {
  const files = ['services', 'shared'].flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts')).map((file) => join(projectRoot, folder, file)))
  const named = new Set(files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/'(posthouse_[a-z0-9_]+)'/g)].map((match) => match[1] ?? '')))
  assert.deepEqual([...named].sort(), [...registeredSeries().keys()].sort())
})

test('the documents name no series that is not there', () => {
  const series = registeredSeries()
  const unknown = documents.flatMap(({ path, spans, blockLines }) => [...spans, ...blockLines].flatMap((text) =>
    [...text.matchAll(/\bposthouse_[a-z0-9_]+\b/g)].map(([name]) => name).filter((name) => !series.has(name)).map((name) => `${path}: ${name}`)))
  assert.deepEqual(unknown, [])
})
