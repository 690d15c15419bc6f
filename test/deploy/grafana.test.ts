import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { dashboard } from '../../deploy/grafana/dashboard.ts'
import { rows } from '../../deploy/grafana/panels.ts'
import { alertRules } from '../../shared/domain/alert-rules.ts'
import { knownSeries, seriesIn } from './exported-series.ts'
import { promtool, skipWithoutPrometheus } from './promtool.ts'

const panels = rows.flatMap((row) => row.panels)
const expressions = panels.flatMap(({ queries }) => queries.map(({ expr }) => expr))

test('the dashboard file is what the panels make', () => {
  const committed = readFileSync(join(projectRoot, 'deploy/grafana/dashboards/posthouse.json'), 'utf8')
  assert.equal(committed, `${JSON.stringify(dashboard(), null, 2)}\n`, 'run: node deploy/grafana/dashboard.ts > deploy/grafana/dashboards/posthouse.json')
})

test('panels are made of series that a service exports', () => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const ofNode = new Set(registry.getMetricsAsArray().map(({ name }) => name))
  for (const expr of expressions) {
    const ours = seriesIn(expr)
    const others = [...expr.matchAll(/\b(?:process|nodejs)_[a-z0-9_]+\b/g)].map(([name]) => name)
    assert.ok(ours.length + others.length > 0 || expr.startsWith('ALERTS{'), expr)
    assert.deepEqual([...ours.filter((name) => !knownSeries.has(name)), ...others.filter((name) => !ofNode.has(name))], [], expr)
  }
})

test('a threshold is drawn in the unit of its alert, and panels lie beside each other', () => {
  const units = { 'share': 'percentunit', 'records': 'short', 'partitions': 'short', 'faults': 'short', 'processes': 'short', 'per minute': 'cpm', 'seconds': 's' } as const
  for (const { title, alert, unit } of panels) {
    if (alert !== undefined) assert.equal(unit, units[alertRules.find(({ name }) => name === alert)!.unit], title)
  }
  type Placed = { readonly id: number; readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number } }
  const placed = (dashboard() as { readonly panels: readonly Placed[] }).panels
  assert.equal(new Set(placed.map(({ id }) => id)).size, placed.length)
  const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) => Array.from({ length: w * h }, (_, at) => `${x + at % w} ${y + Math.floor(at / w)}`))
  assert.equal(new Set(cells).size, cells.length)
})

test('Prometheus understands every expression', { skip: skipWithoutPrometheus }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-grafana-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'rules.json')
  const rules = expressions.map((expr, index) => ({ record: `posthouse:panel:${index}`, expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*') }))
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
  const { status, output } = promtool(['check', 'rules', file])
  assert.equal(status, 0, output)
})
