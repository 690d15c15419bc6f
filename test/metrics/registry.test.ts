import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attemptSecondsBuckets, internalSecondsBuckets, latenessSecondsBuckets, waitingSecondsBuckets } from '../../shared/metrics/buckets.ts'
import { createMetrics } from '../../shared/metrics/registry.ts'

const newMetrics = () => createMetrics({ version: '1.2.3', service: 'delivery' })
const help = 'Something that is counted.'

test('a registry says which build this is and how the process does', async () => {
  const text = await newMetrics().registry.metrics()
  assert.match(text, /^posthouse_build_info\{version="1\.2\.3",service="delivery"\} 1$/m)
  assert.match(text, /^nodejs_eventloop_lag_p99_seconds /m)
  assert.match(text, /^process_cpu_seconds_total /m)
})

test('series with known label values exist at 0 from the start', async () => {
  const { registry, counter, histogram, gauge } = newMetrics()
  counter({ name: 'posthouse_attempts_total', help, labels: { outcome: ['success', 'failure'], band: ['healthy', 'degraded'] } })
  counter({ name: 'posthouse_rejected_total', help, labels: { topic: [] } }).inc({ topic: 'orders' })
  counter({ name: 'posthouse_plain_total', help })
  histogram({ name: 'posthouse_attempt_seconds', help, labels: { outcome: ['success'] }, buckets: attemptSecondsBuckets })
  let depth = 0
  gauge({ name: 'posthouse_depth', help, collect: (gauge) => gauge.set(depth) })
  depth = 7
  const text = await registry.metrics()
  for (const line of [
    'posthouse_attempts_total{outcome="success",band="healthy"} 0', 'posthouse_attempts_total{outcome="failure",band="degraded"} 0',
    'posthouse_rejected_total{topic="orders"} 1', 'posthouse_plain_total 0', 'posthouse_attempt_seconds_bucket{le="30",outcome="success"} 0',
    'posthouse_attempt_seconds_count{outcome="success"} 0', 'posthouse_depth 7',
  ]) assert.ok(text.split('\n').includes(line), `${line} not in\n${text}`)
})

test('names, units, help and labels are checked when a series is made', () => {
  const { counter, gauge, histogram } = newMetrics()
  const buckets = [1, 2]
  assert.throws(() => counter({ name: 'posthouse_attempts', help }), /ends in _total/)
  assert.throws(() => counter({ name: 'attempts_total', help }), /posthouse_ and lower-case/)
  assert.throws(() => counter({ name: 'posthouse_attempts_total', help: 'x' }), /say in a sentence/)
  assert.throws(() => gauge({ name: 'posthouse_depth_total', help }), /does not end in _total/)
  assert.throws(() => gauge({ name: 'posthouse_age_ms', help }), /seconds and bytes/)
  assert.throws(() => histogram({ name: 'posthouse_attempt', help, buckets }), /ends in its unit/)
  assert.throws(() => histogram({ name: 'posthouse_attempt_seconds', help, buckets: [2, 1] }), /must grow/)
  for (const label of ['tenant', 'url', 'endpoint', 'delivery_id', 'id']) {
    assert.throws(() => counter({ name: 'posthouse_attempts_total', help, labels: { [label]: [] } }), /each customer/, label)
  }
  assert.throws(() => counter({
    name: 'posthouse_attempts_total', help, labels: { a: Array.from({ length: 50 }, String), b: Array.from({ length: 50 }, String) },
  }), /2500 series/)
})

test('two registries in one process share nothing', () => {
  newMetrics().counter({ name: 'posthouse_attempts_total', help })
  newMetrics().counter({ name: 'posthouse_attempts_total', help })
})

test('buckets grow, attempts have an edge at 30 s, waits at each tier and at the expiry', () => {
  const waits = waitingSecondsBuckets([10_000, 60_000, 48 * 3_600_000], 14 * 86_400_000)
  for (const edge of [10, 60, 172_800, 1_209_600]) assert.ok(waits.includes(edge), String(edge))
  assert.ok(attemptSecondsBuckets.includes(30))
  // A tier of 500 ms, as tests have, must not make an edge twice.
  for (const buckets of [waits, waitingSecondsBuckets([500, 5_000], 60_000), attemptSecondsBuckets, internalSecondsBuckets, latenessSecondsBuckets]) {
    assert.ok(buckets.every((edge, index) => index === 0 || edge > buckets[index - 1]!))
  }
})
