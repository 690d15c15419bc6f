import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attempt } from '../../shared/domain/delivery.ts'
import { createAttemptHistory } from '../../shared/domain/health.ts'
import { deliveryId, endpointKey } from '../../shared/domain/ids.ts'
import { encodeEndpointHealth } from '../../shared/records/endpoint-health-codec.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { dueHeader } from '../../shared/records/record-headers.ts'
import { attempt, dead, success, writeAttempts } from '../lookup/attempts.ts'
import { kafkaForTests, produceTo } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { installationFor, type Installation } from './run-cli.ts'

const { skip } = kafkaForTests()

type Listed = { deliveryId: string; state: string; recordedAt: string; attempt: number; excerpt: string | null }
type Shown = { deliveryId: string; state: string; isWhole: boolean; attempts: Listed[] }
type ListedEndpoint = { endpointKey: string; host: string | null; band: string | null; waiting: { topic: string; records: number }[] | null; subscriptions: { id: string; isGone: boolean }[] }
type Replayed = { replay: number; wanted: number; alreadyDelivered: number | null; underWay: number | null; toSend: number; sent: number | null; failed: number | null; refused: Record<string, number> }

const url = 'http://127.0.0.1:1/hook?token=t0ken'
const subscribe = async ({ expect }: Installation, ...args: string[]): Promise<string> =>
  ((await expect(0, ['subscriptions', 'create', '--url', url, '--type', 'order.*', ...args, '-o', 'json'])).json() as { id: string }).id

test('deliveries are listed and shown from their attempts; what was read is said', { skip }, async (t) => {
  const { names, expect } = await installationFor(t, 'cli-deliveries', { provisioned: true })
  const key = endpointKey(url)
  const mine: Partial<Attempt> = { endpointKey: key, startedAt: Date.now() }
  await writeAttempts(names.attempts, [attempt('del_1', { ...mine, excerpt: 'go away\u001b[31m' })])
  await writeAttempts(names.attempts, [attempt('del_1', { ...mine, attempt: 2, ...dead, status: 500, error: 'http_500' })])
  await writeAttempts(names.attempts, [attempt('del_2', { endpointKey: 'ep_b', eventId: 'evt_2', ...success })])

  const [all, ofUrl, failed, outcome, none, shown, table, missing, wrong, wrongUrl] = await Promise.all([
    expect(0, ['deliveries', 'list', '-o', 'json']),
    expect(0, ['deliveries', 'list', '--endpoint', url, '-o', 'jsonl']),
    expect(0, ['deliveries', 'list', '--state', 'dlq,expired', '--since', '1h']),
    expect(0, ['deliveries', 'list', '--outcome', 'http_500', '-o', 'jsonl']),
    expect(0, ['deliveries', 'list', '--until', '1h', '-o', 'json', '--quiet']),
    expect(0, ['deliveries', 'show', 'del_1', '-o', 'json']),
    expect(0, ['deliveries', 'show', 'del_1', '--endpoint', key]),
    expect(3, ['deliveries', 'show', 'del_none', '-o', 'json']),
    expect(2, ['deliveries', 'list', '--state', 'dead']),
    expect(2, ['deliveries', 'list', '--endpoint', 'ep_short', '-o', 'json']),
  ])
  assert.deepEqual((all.json() as Listed[]).map(({ deliveryId, state, attempt }) => [deliveryId, state, attempt]), [['del_2', 'success', 1], ['del_1', 'dlq', 2]])
  assert.match(all.stderr, new RegExp(`^posthouse: read 3 of 3 records in 2 partitions of ${names.attempts}, of 20\\S+Z to 20\\S+Z\n$`))
  assert.deepEqual((ofUrl.lines() as Listed[]).map(({ deliveryId }) => deliveryId), ['del_1'])
  assert.match(ofUrl.stderr, /in 1 partition of/)
  assert.match(failed.stdout, /^LAST .*\n.*Z {2}del_1 +evt-of-del_1 +order\.created {2}ep_\w+ {2} +2 {2}dlq: HTTP 500, exhausted\n$/)
  assert.deepEqual((outcome.lines() as Listed[]).map(({ deliveryId }) => deliveryId), ['del_1'])
  assert.deepEqual([none.json(), none.stderr], [[], ''])
  const whole = shown.json() as Shown
  assert.deepEqual([whole.state, whole.isWhole, whole.attempts.map(({ excerpt }) => excerpt)], ['dlq', true, ['go away\u001b[31m', null]])
  assert.match(table.stdout, /state +dlq: HTTP 500, exhausted\nattempts +20\S+Z {2}#1 {2}5 ms {2}HTTP 503, waits {2}retriable {2}ep_\w+\n +\| go away\ufffd\[31m\n +20\S+Z {2}#2 .*dlq/)
  assert.match(missing.error().message, /nothing was found of delivery del_none/)
  assert.match(wrong.stderr, /dead is none of waiting, success/)
  assert.match(wrongUrl.error().message, /neither the key of an endpoint/)
})

test('endpoints are listed the worst first, and one is shown with all that is known', { skip }, async (t) => {
  const installation = await installationFor(t, 'cli-endpoints', { provisioned: true })
  const { names, expect } = installation
  const id = await subscribe(installation)
  const key = endpointKey(url)
  const history = createAttemptHistory()
  for (let at = 0; at < 4; at += 1) history.record(Date.now(), false)
  const healthOf = (endpointKey: string, overrides: object = {}) => ({ key: endpointKey, value: encodeEndpointHealth({
    endpointKey, attempts: createAttemptHistory().pack(), band: 'healthy', throttledUntil: null, throttleRatePerSecond: null, goneAt: null, goneWrittenAt: null,
    lastError: null, lastStatus: null, updatedAt: Date.now(), ...overrides,
  }) })
  await produceTo(names.endpointHealth, [
    healthOf('ep_well'), healthOf(key, { attempts: history.pack(), band: 'unhealthy', lastError: 'connect_refused', throttledUntil: Date.now() + 3_600_000 }),
  ])
  await produceTo(names.tier(60_000), [{ key, value: 'x', headers: { [dueHeader]: String(Date.now()) } }, { key, value: 'y' }])
  await produceTo(names.deliveries, [{ key: 'ep_new', value: 'x' }])
  await writeAttempts(names.attempts, [attempt('del_1', { endpointKey: key, startedAt: Date.now() })])

  const [list, counted, unhealthy, shown, text, unknown] = await Promise.all([
    expect(0, ['endpoints', 'list']),
    expect(0, ['endpoints', 'list', '--waiting', '-o', 'json']),
    expect(0, ['endpoints', 'list', '--band', 'unhealthy', '-o', 'jsonl']),
    expect(0, ['endpoints', 'show', url, '-o', 'json']),
    expect(0, ['endpoints', 'show', key]),
    expect(3, ['endpoints', 'show', 'https://example.test/secret', '-o', 'json']),
  ])
  assert.match(list.stdout, new RegExp(`\n${key} {2}127\\.0\\.0\\.1:1 {2}unhealthy {2} 0\\.00 {2}connect_refused {2}\\S+ {2}throttled until \\S+\nep_well +- +healthy +1\\.00 +- `))
  assert.match(list.stderr, /read 2 of 2 records/)
  const waiting = (counted.json() as ListedEndpoint[]).map(({ endpointKey, band, waiting }) => [endpointKey, band, waiting?.map(({ topic, records }) => [topic, records])])
  assert.deepEqual(waiting, [[key, 'unhealthy', [[names.tier(60_000), 2]]], ['ep_well', 'healthy', []], ['ep_new', null, [[names.deliveries, 1]]]])
  assert.deepEqual((unhealthy.lines() as ListedEndpoint[]).map(({ endpointKey, waiting }) => [endpointKey, waiting]), [[key, null]], 'not counted is not 0')
  const one = shown.json() as ListedEndpoint & { attempts: Listed[] }
  assert.deepEqual([one.host, one.subscriptions, one.attempts.map(({ deliveryId }) => deliveryId)], ['127.0.0.1:1', [{ id, state: 'active', isGone: false }], ['del_1']])
  assert.match(text.stdout, new RegExp(`subscriptions +${id} {2}active\nwaiting +2 in ${names.tier(60_000)}, the first due 20.*\nlast attempts +.*del_1`))
  for (const { stdout, stderr } of [list, shown, text, unknown]) assert.doesNotMatch(stdout + stderr, /t0ken|secret/)
  assert.match(unknown.error().message, /nothing is known of the endpoint ep_/)
})

test('a replay of events is counted first, sent with --yes, and refused where nothing would be sent', { skip }, async (t) => {
  const installation = await installationFor(t, 'cli-replay', { provisioned: true })
  const { names, eventsTopic, expect } = installation
  const lines = ['order.paid', 'order.created', 'user.created'].map((type, at) => JSON.stringify({ id: `evt_${at}`, type })).join('\n')
  await expect(0, ['events', 'send'], { input: lines })
  await produceTo(eventsTopic, [{ value: 'no event' }])
  const id = await subscribe(installation)
  const replay = (code: number, ...args: string[]) => expect(code, ['events', 'replay', '--subscription', id, '--since', '1h', '-o', 'json', ...args])
  const idOf = (eventId: string) => deliveryId({ tenant: null, source: eventsTopic, eventId, subscriptionId: id })

  const [preview, dry, early] = [await replay(2), await replay(0, '--dry-run', '--type', 'order.paid'), await replay(0, '--until', '59m')]
  const counted = preview.json() as Replayed
  assert.deepEqual({ ...counted, replay: 0 }, { ...counted, replay: 0, wanted: 2, toSend: 2, alreadyDelivered: null, sent: null, refused: { not_json: 1 } })
  assert.match(preview.error().message, /this is a preview/)
  assert.deepEqual([(dry.json() as Replayed).toSend, (early.json() as Replayed).toSend], [1, 0])
  assert.deepEqual(await readTopic(names.deliveries), [], 'nothing was sent')

  const startedAt = Math.floor(Date.now() / 1000)
  const done = (await replay(0, '--yes', '--rate', '50')).json() as Replayed
  assert.deepEqual([done.sent, done.failed], [2, 0])
  assert.ok(done.replay >= startedAt && done.replay <= Date.now() / 1000)
  const made = (await readTopic(names.deliveries)).map(({ key, value }) => ({ key: key?.toString(), ...decodeDelivery(value!) }))
  assert.deepEqual(new Set(made.map((one) => one.id)), new Set([idOf('evt_0'), idOf('evt_1')]))
  assert.ok(made.every((one) => one.key === endpointKey(url) && one.replay === done.replay))

  await writeAttempts(names.attempts, [attempt(idOf('evt_0'), { subscriptionId: id, ...success }), attempt(idOf('evt_1'), { subscriptionId: id })])
  const rest = (await replay(0, '--undelivered', '--yes')).json() as Replayed
  assert.deepEqual([rest.alreadyDelivered, rest.underWay, rest.sent], [1, 1, 1])

  const [unknown, backwards, badType] = await Promise.all([
    expect(3, ['events', 'replay', '--subscription', 'sub_none', '--since', '1h', '-o', 'json']),
    replay(2, '--until', '2h'), replay(2, '--type', 'a*'),
  ])
  assert.match(unknown.error().message, /no subscription sub_none/)
  assert.match(backwards.error().message, /--until is not after --since/)
  assert.match(badType.error().message, /may only stand alone/)
  await expect(0, ['subscriptions', 'disable', id])
  assert.match((await replay(5, '--yes')).error().message, /is disabled: nothing is sent to it/)
  await expect(0, ['subscriptions', 'enable', id])
  await produceTo(names.endpointHealth, [{ key: endpointKey(url), value: encodeEndpointHealth({
    endpointKey: endpointKey(url), attempts: createAttemptHistory().pack(), band: 'healthy', throttledUntil: null, throttleRatePerSecond: null,
    goneAt: Date.now() + 60_000, goneWrittenAt: Date.now(), lastError: null, lastStatus: 410, updatedAt: Date.now(),
  }) }])
  assert.match((await replay(5, '--yes')).error().message, /answered 410 Gone/)
})
