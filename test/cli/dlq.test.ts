import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { DeadLetter } from '../../shared/domain/delivery.ts'
import type { DeadLetterStory, DeadLetterView } from '../../shared/dead-letters/view.ts'
import { takeReplayTurn } from '../../shared/dead-letters/replay-turn.ts'
import { createBrokerTime } from '../../shared/kafka/broker-time.ts'
import { createProducer } from '../../shared/kafka/producer.ts'
import { decodeDelivery } from '../../shared/records/delivery-codec.ts'
import { idOf, keyOf, letterOf, newerBytes, recordOf } from '../dead-letters/lab.ts'
import { deleteGroupAfter, kafkaForTests, testConnection } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { until } from '../support/until.ts'
import { installationFor, type Installation } from './run-cli.ts'

const { skip } = kafkaForTests()

async function open(t: TestContext) {
  const installation = await installationFor(t, 'cli-dlq', { provisioned: true })
  const groupPrefix = installation.env['POSTHOUSE_GROUP_PREFIX']!
  deleteGroupAfter(t, `${groupPrefix}.replay`)
  const producer = await createProducer({ connection: testConnection(), brokerTime: createBrokerTime() })
  t.after(() => producer.close())
  const { dlq } = installation.names
  return {
    ...installation, producer, groupPrefix,
    write: (letters: readonly DeadLetter[]) => Promise.all(letters.map((letter) => producer.send(recordOf(dlq, letter)))),
    writeNewer: (letter: DeadLetter) => producer.send({ ...recordOf(dlq, letter), value: newerBytes() }),
    list: async (...args: string[]) => (await installation.expect(0, ['dlq', 'list', ...args, '-o', 'json'])).json() as DeadLetterView[],
    delivered: async () => (await readTopic(installation.names.deliveries)).map(({ key, value }) => ({ key: key?.toString(), ...decodeDelivery(value!) })),
  }
}

const subscribe = async ({ expect }: Installation, url = 'http://127.0.0.1:1/'): Promise<{ id: string; endpointKey: string }> =>
  (await expect(0, ['subscriptions', 'create', '--url', url, '--type', '*', '-o', 'json'])).json() as { id: string; endpointKey: string }

const keysOf = (views: readonly DeadLetterView[]): string[] => views.map(({ key }) => key)

test('list shows what is open, the latest first, by every filter; piped it is whole', { skip }, async (t) => {
  const installation = await open(t)
  const { expect, write, writeNewer, list } = installation
  const hourAgo = Date.now() - 3_600_000
  const letters = [
    letterOf('a', { diedAt: hourAgo - 1_000, reason: 'exhausted', lastStatus: 503, lastError: 'http_503' }),
    letterOf('b', { diedAt: hourAgo, reason: 'permanent_failure', lastStatus: 400, lastError: 'http_400', delivery: { eventType: 'order.paid', tenant: 'acme' } }),
    letterOf('c', { diedAt: hourAgo + 1_000, reason: 'exhausted', lastStatus: null, lastError: 'connect_refused', endpointKey: 'ep_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }),
  ]
  await write(letters)
  const [a, b, c] = letters.map(keyOf)
  assert.deepEqual(keysOf(await list()), [c, b, a])
  const filters: [string[], (string | undefined)[]][] = [
    [['--reason', 'exhausted'], [c, a]], [['--status', '503'], [a]], [['--error', 'connect_refused'], [c]], [['--type', 'order.*'], [c, b, a]],
    [['--type', 'order.paid'], [b]], [['--tenant', 'acme'], [b]], [['--event', 'evt_b'], [b]], [['--subscription', 'sub_none'], []],
    [['--endpoint', 'ep_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'], [c]], [['--since', new Date(hourAgo).toISOString()], [c, b]], [['--until', new Date(hourAgo).toISOString()], [a]],
    [['--since', '30m'], []], [['--limit', '2'], [c, b]],
  ]
  for (const [args, expected] of filters) assert.deepEqual(keysOf(await list(...args)), expected, args.join(' '))

  const table = (await expect(0, ['dlq', 'list'])).stdout.split('\n')
  assert.match(table[0]!, /^DIED +KEY +REASON +LAST +ATTEMPTS +TYPE +EVENT +SUBSCRIPTION +ENDPOINT/)
  assert.match(table[1]!, new RegExp(`${c} +exhausted +connect_refused +8 +order.created +evt_c +sub_a +ep_a+ hook.example$`))
  assert.match(table[2]!, new RegExp(`${b} +permanent_failure +HTTP 400 `))
  assert.equal((await expect(0, ['dlq', 'list', '-o', 'jsonl'])).lines().length, 3)

  await writeNewer(letterOf('d', { reason: 'gone' }))
  const withNewer = await expect(0, ['dlq', 'list', '--reason', 'gone', '-o', 'json'])
  assert.match((withNewer.json() as DeadLetterView[])[0]!.unreadable ?? '', /newer posthouse/)
  assert.match(withNewer.stderr, /1 dead letters cannot be read by this version/)
  const none = await installationFor(t, 'cli-dlq-none', { provisioned: true })
  assert.deepEqual((await none.expect(0, ['dlq', 'list', '-o', 'json'])).json(), [])
  for (const wrong of [['--type', 'a*b'], ['--since', '1h', '--until', '2h'], ['--reason', 'boredom'], ['--endpoint', 'nowhere']]) await expect(2, ['dlq', 'list', ...wrong])
})

test('show and export give the whole story; bytes that are no text come as base64', { skip }, async (t) => {
  const { expect, write, producer, names, list } = await open(t)
  const raw = letterOf('raw', { delivery: { body: Buffer.from([0xff, 0x00, 0x41]) } })
  const plain = letterOf('plain', { shortened: 'excerpts cut', delivery: { body: Buffer.from('{"id":"evt_plain",\n "text":"é\u2028\u001b[31m"}'), tenant: 'acme' } })
  await write([raw, plain, letterOf('twice'), letterOf('twice', { delivery: { replay: 1 } })])

  const shown = (await expect(0, ['dlq', 'show', plain.delivery.id])).stdout
  for (const expected of [
    /^key +del_.*\.0$/m, /^died .* dlq: exhausted after 8 attempts$/m, /^tenant +acme$/m, /^read from +webhooks.events\/3\/42 of 2023/m, /^source key +k$/m,
    /^headers +traceparent: 00-1$/m, /^ +x: AP8= \(base64\)$/m, /^attempts +7 earlier ones are not kept here$/m, /#1 {2}2023-11-14T\S+ {2}12ms {2}HTTP 503 {2}retriable/,
    /\| down$/m, /^left out +excerpts cut$/m, /^body +\d+ bytes$/m, /"text":"é\u2028\ufffd\[31m"/,
  ]) assert.match(shown, expected)
  assert.ok(!shown.includes('\u001b'), 'nothing of others reaches the terminal')

  const story = (await expect(0, ['dlq', 'show', keyOf(plain), '-o', 'json'])).json() as DeadLetterStory
  assert.deepEqual(story.body, { bytes: plain.delivery.body.length, text: plain.delivery.body.toString() })
  assert.deepEqual(story.sourceHeaders, [{ name: 'traceparent', text: '00-1' }, { name: 'x', base64: 'AP8=' }])
  assert.equal(((await expect(0, ['dlq', 'show', idOf('twice'), '-o', 'json'])).json() as DeadLetterStory).replay, 1, 'the latest of a delivery')

  const exported = (await expect(0, ['dlq', 'export'])).lines() as DeadLetterStory[]
  assert.deepEqual(keysOf(exported).toSorted(), [keyOf(raw), keyOf(plain), `${idOf('twice')}.1`].toSorted(), 'what was replayed already is not among them')
  assert.deepEqual(exported.find(({ key }) => key === keyOf(raw))!.body, { bytes: 3, base64: '/wBB' })
  assert.deepEqual((await expect(0, ['dlq', 'export', '--event', 'evt_plain', '-o', 'json'])).json(), [story])
  assert.match((await expect(0, ['dlq', 'list', '-o', 'json'])).stderr, /1 more were replayed by a command that was killed/)
  assert.equal((await list()).length, 3)

  const nothing = (await expect(3, ['dlq', 'show', 'del_nobody', '-o', 'json'])).error()
  assert.match(nothing.message, /no dead letter del_nobody$/)
  await producer.send({ topic: names.dlq, key: 'del_cleared.0', value: null, headers: [{ name: 'posthouse-cleared', value: 'discarded' }] })
  assert.match((await expect(3, ['dlq', 'show', 'del_cleared.0', '-o', 'json'])).error().message, /any more: it was discarded at 20/)
})

test('replay previews, sends with --yes, refuses with reasons, and says what it did by its exit code', { skip }, async (t) => {
  const installation = await open(t)
  const { expect, write, delivered, list } = installation
  const [kept, deleted] = [await subscribe(installation), await subscribe(installation, 'http://127.0.0.1:1/other')]
  await expect(0, ['subscriptions', 'delete', deleted.id, '--yes'])
  const letters = Array.from({ length: 5 }, (_, number) => letterOf(number, { delivery: { subscriptionId: kept.id } }))
  const lost = letterOf('lost', { reason: 'gone', delivery: { subscriptionId: deleted.id } })
  await write([...letters, lost])

  for (const wrong of [[], ['--all', '--reason', 'gone'], ['--force', '--all'], ['--rate', '0', '--all']]) await expect(2, ['dlq', 'replay', ...wrong])
  const preview = await expect(2, ['dlq', 'replay', '--all', '-o', 'json'])
  assert.deepEqual(JSON.parse(preview.stdout), {
    toReplay: 5, leftovers: 0, refused: 1, refusedByReason: { subscription_deleted: 1 }, missing: [],
    subscriptions: [{ subscriptionId: kept.id, endpointKey: kept.endpointKey, host: '127.0.0.1:1', count: 5 }],
  })
  assert.equal(preview.error().code, 'confirmation_needed')
  assert.match((await expect(0, ['dlq', 'replay', '--all', '--dry-run'])).stdout, new RegExp(`^TO REPLAY +SUBSCRIPTION +ENDPOINT\n +5 +${kept.id} +${kept.endpointKey} 127.0.0.1:1\n$`))
  assert.equal((await delivered()).length, 0)

  const one = await expect(0, ['dlq', 'replay', letters[0]!.delivery.id, '-o', 'json'])
  assert.deepEqual(one.json(), { replayed: 1, leftovers: 0, refused: 0, refusedByReason: {}, failed: 0, refusals: [], failures: [], missing: [], end: 'complete' })
  const partly = await expect(6, ['dlq', 'replay', '--all', '--yes', '-o', 'json'])
  assert.equal((partly.json() as { replayed: number }).replayed, 4)
  assert.match(partly.error().message, /^1 of 5 dead letters were not replayed$/)
  assert.match(partly.stderr, new RegExp(`${keyOf(lost)} is refused: its subscription ${deleted.id} was deleted`))
  assert.deepEqual(keysOf(await list()), [keyOf(lost)])

  const sent = await delivered()
  assert.deepEqual(sent.map(({ id }) => id).toSorted(), letters.map(({ delivery }) => delivery.id).toSorted())
  for (const delivery of sent) {
    const before = letters.find(({ delivery: { id } }) => id === delivery.id)!.delivery
    assert.deepEqual([delivery.key, delivery.replay, delivery.attemptsMade, delivery.body], [kept.endpointKey, 1, 0, before.body])
  }

  assert.match((await expect(5, ['dlq', 'replay', keyOf(letters[0]!), '-o', 'json'])).stderr, /is refused: it was replayed, as replay 1 at 20/)
  assert.match((await expect(3, ['dlq', 'replay', 'del_nobody', '-o', 'json'])).stderr, /there is no dead letter del_nobody/)
  assert.match((await expect(6, ['dlq', 'replay', 'del_nobody', keyOf(letters[0]!), '--force', '-o', 'json'])).stdout, /"replayed": 1/)
  assert.ok((await delivered()).some(({ replay }) => replay > 1_700_000_000))
  await expect(5, ['dlq', 'replay', '--reason', 'gone', '--yes'])
  assert.match((await expect(0, ['dlq', 'replay', '--tenant', 'nobody', '--yes', '-o', 'json'])).stdout, /"replayed": 0/)
})

test('discard needs --yes, also for ids, and keeps what does not pass the filter', { skip }, async (t) => {
  const { expect, write, list, delivered } = await open(t)
  const [a, b] = [letterOf('a'), letterOf('b', { reason: 'gone' })]
  await write([a, b])
  await expect(2, ['dlq', 'discard'])
  await expect(2, ['dlq', 'discard', keyOf(a)])
  assert.match((await expect(0, ['dlq', 'discard', '--all', '--dry-run'])).stdout, /1 {2}exhausted|1 {2}gone/)
  assert.equal((await list()).length, 2)
  assert.deepEqual((await expect(0, ['dlq', 'discard', '--reason', 'gone', '--yes', '-o', 'json'])).json(), {
    discarded: 1, leftovers: 0, refused: 0, refusedByReason: {}, failed: 0, refusals: [], failures: [], missing: [], end: 'complete',
  })
  assert.deepEqual(keysOf(await list()), [keyOf(a)])
  await expect(5, ['dlq', 'discard', keyOf(b), '--yes'])
  await expect(0, ['dlq', 'discard', '--all', '--yes'])
  assert.deepEqual(await list(), [])
  assert.equal((await delivered()).length, 0)
})

test('while somebody replays, a second is refused and looking is not', { skip }, async (t) => {
  const installation = await open(t)
  const { expect, write, list, groupPrefix, names } = installation
  const { id } = await subscribe(installation)
  await write([letterOf('a', { delivery: { subscriptionId: id } })])
  const turn = await takeReplayTurn({ connection: testConnection(), groupPrefix, topic: names.dlq })
  assert.ok(turn)
  t.after(() => turn.end())
  for (const verb of ['replay', 'discard']) {
    const { code, message } = (await expect(5, ['dlq', verb, '--all', '--yes', '-o', 'json'])).error()
    assert.deepEqual([code, message], ['conflict', 'dead letters are being replayed or discarded by somebody else: one at a time'])
  }
  assert.equal((await list()).length, 1)
  await expect(0, ['dlq', 'replay', '--all', '--dry-run'])
  await turn.end()
  await expect(0, ['dlq', 'replay', '--all', '--yes'])
})

test('an interrupt ends a replay between two batches, and tells what was sent', { skip }, async (t) => {
  const installation = await open(t)
  const { write, delivered, start, list, expect } = installation
  const { id } = await subscribe(installation)
  await write(Array.from({ length: 40 }, (_, number) => letterOf(number, { delivery: { subscriptionId: id } })))
  const replaying = start(['dlq', 'replay', '--all', '--yes', '--rate', '8', '-o', 'json'])
  await until(async () => (await delivered()).length > 0, { deadlineMs: 30_000 })
  replaying.child.kill('SIGINT')
  const result = await replaying.ended
  assert.equal(result.code, 130, result.stderr)
  const { replayed, end } = JSON.parse(result.stdout) as { replayed: number; end: string }
  assert.equal(end, 'interrupted')
  assert.ok(replayed > 0 && replayed < 40)
  assert.equal((await delivered()).length, replayed)
  assert.equal((await list()).length, 40 - replayed)
  await expect(0, ['dlq', 'replay', '--all', '--yes'])
  assert.equal(new Set((await delivered()).map((delivery) => delivery.id)).size, 40)
  assert.equal((await delivered()).length, 40)
})
