import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { kafkaForTests } from '../support/kafka.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { metricsText } from './metrics.ts'
import { openPipeline, patienceMs } from './pipeline.ts'
import { tallyOf } from './received.ts'

const { skip } = kafkaForTests()

const isInstalled = ((): boolean => {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

test('metrics', { skip }, async (t) => {
  const endpoints = 500
  const fanOuts = 40
  const pipeline = await openPipeline(t, { scheduleMs: [300, 600] })
  let failures = 0
  const receiver = await startReceiver(t, ({ path }) => (path === '/0' && ++failures <= 2 ? { status: 500 } : {}))
  const { routers, deliveries, retryTiers } = await pipeline.startAll()
  const all = [...routers, ...deliveries, ...retryTiers]
  const subscribeTo = (from: number, to: number) => Promise.all(Array.from({ length: to - from }, (_, index) =>
    pipeline.subscribe(`${receiver.url}/${from + index}`, { tenant: `tenant-${(from + index) % 50}`, eventTypes: ['*'] })))
  const delivered = (): Promise<number> => pipeline.metric(deliveries, 'posthouse_delivery_duration_seconds_count')
  // Node's own have a series for each kind of garbage collection and of resource that has occurred: a handful, whatever is delivered.
  const seriesOf = (text: string): number => text.split('\n').filter((line) => line.startsWith('posthouse_')).length
  const sendToAllTenants = (name: string, count: number) => pipeline.send(Array.from({ length: count * 50 }, (_, n) => (
    { id: `${name}_${n}`, type: `type.${name}.${n}`, headers: { 'event-tenant': `tenant-${n % 50}` } })))

  await subscribeTo(0, 10)
  await sendToAllTenants('first', 1)
  await until(async () => await delivered() === 10, { deadlineMs: patienceMs, intervalMs: 100 })
  await pipeline.untilQuiet()
  const afterTen = await Promise.all(all.map(({ url }) => metricsText(url)))

  await t.test('a page of metrics is no longer after 20,000 deliveries to 500 endpoints than after ten', async (t) => {
    await subscribeTo(10, endpoints)
    await sendToAllTenants('many', fanOuts)
    await until(async () => await delivered() >= 10 + fanOuts * endpoints, { deadlineMs: 2 * patienceMs, intervalMs: 500, message: () => `${fanOuts * endpoints} deliveries (${receiver.requests.length} requests came)` })
    const pages = await Promise.all(all.map(({ url }) => metricsText(url)))
    for (const [index, page] of pages.entries()) {
      t.diagnostic(`${page.length} bytes, ${seriesOf(page)} series of ours; ${afterTen[index]!.length} and ${seriesOf(afterTen[index]!)} before`)
      assert.equal(seriesOf(page), seriesOf(afterTen[index]!))
      assert.ok(page.length < afterTen[index]!.length * 1.5)
      for (const word of ['tenant-', '127.0.0.1', 'ep_', 'sub_', 'del_', 'type.many']) assert.ok(!page.includes(word), `${word} in the page`)
    }
    assert.equal(receiver.requests.length, 10 + fanOuts * endpoints + 2)
    assert.equal(tallyOf(receiver.requests).repeats, 0)
  })

  await t.test('promtool finds nothing wrong with a page', { skip: isInstalled ? false : 'needs promtool (Debian: prometheus)' }, async () => {
    for (const { url } of all) {
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: await metricsText(url), encoding: 'utf8' })
      // 3: it could be read, and the names of some could be better; those of prom-client's own metrics of Node.js are not ours to choose.
      assert.ok(status === 0 || status === 3, `promtool ended with ${status}: ${stderr}`)
      const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line !== '' && !line.startsWith('nodejs_'))
      assert.deepEqual(complaints, [])
    }
  })
})
