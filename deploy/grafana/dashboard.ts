/**
 * node deploy/grafana/dashboard.ts
 *
 * Prints the dashboard, as dashboards/posthouse.json has it; a test sees to that. Thresholds that are drawn are those of the alerts.
 */
import { rows, thresholdOf, type Panel } from './panels.ts'

const columns = 24
const perLine = 4
const width = columns / perLine
const heights = { lines: 7, stat: 5, table: 5 } as const
const datasource = { type: 'prometheus', uid: '${datasource}' }

/** The dashboard as Grafana imports it. */
export function dashboard(): object {
  const panels: object[] = []
  let y = 0
  for (const { title, panels: inRow } of rows) {
    panels.push({ id: panels.length + 1, type: 'row', title, collapsed: false, panels: [], gridPos: { x: 0, y, w: columns, h: 1 } })
    y += 1
    for (let first = 0; first < inRow.length; first += perLine) {
      const line = inRow.slice(first, first + perLine)
      const height = Math.max(...line.map(({ kind = 'lines' }) => heights[kind]))
      for (const [index, panel] of line.entries()) {
        panels.push({ id: panels.length + 1, ...describe(panel), gridPos: { x: index * width, y, w: width, h: height } })
      }
      y += height
    }
  }
  return {
    uid: 'posthouse', title: 'posthouse', tags: ['posthouse', 'kafka', 'webhooks'], schemaVersion: 39, version: 1, editable: true,
    refresh: '30s', time: { from: 'now-3h', to: 'now' }, timezone: 'browser', graphTooltip: 1, annotations: { list: [] }, links: [],
    templating: {
      list: [
        { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', current: {}, hide: 0 },
        {
          name: 'job', label: 'Job', type: 'query', datasource, query: { query: 'label_values(posthouse_build_info, job)', refId: 'job' },
          refresh: 2, multi: true, includeAll: true, allValue: '.*', current: { text: 'All', value: '$__all' }, sort: 1,
        },
      ],
    },
    panels,
  }
}

function describe({ title, description, unit, queries, alert, kind = 'lines' }: Panel): object {
  const steps = [{ color: 'green', value: null }, ...(alert === undefined ? [] : [{ color: 'red', value: thresholdOf(alert) }])]
  return {
    title, description, datasource,
    type: kind === 'lines' ? 'timeseries' : kind,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCodePoint(65 + index), datasource, expr, legendFormat: legend,
      ...(kind === 'lines' ? {} : { instant: true, range: false }), ...(kind === 'table' ? { format: 'table' } : {}),
    })),
    fieldConfig: {
      defaults: {
        unit, min: unit === 's' || unit === 'none' ? null : 0, thresholds: { mode: 'absolute', steps },
        ...(kind === 'lines' ? { custom: { lineWidth: 1, fillOpacity: 5, thresholdsStyle: { mode: alert === undefined ? 'off' : 'dashed' } } } : {}),
      },
      overrides: [],
    },
    options: kind === 'lines' ? { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } }
      : kind === 'stat' ? { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: alert === undefined ? 'none' : 'value', graphMode: 'none' }
      : { showHeader: true },
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(dashboard(), null, 2)}\n`)
