import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredSubscription } from '../../shared/domain/subscription.ts'
import { encodeSubscription } from '../../shared/records/subscription-codec.ts'
import type { Written } from '../../shared/subscriptions/write.ts'
import { kafkaForTests, produceTo } from '../support/kafka.ts'
import { readTopic } from '../support/topic-reader.ts'
import { startLab, type Lab } from './lab.ts'

const options = { skip: kafkaForTests().skip, timeout: 60_000 }
const wanted = { url: 'https://example.com/hooks', eventTypes: ['order.*'] }

const written = (result: Written): StoredSubscription => {
  assert.equal(result.kind, 'written', JSON.stringify(result))
  return (result as { subscription: StoredSubscription }).subscription
}
const present = async ({ table }: Lab, id: string): Promise<StoredSubscription> => {
  await table.waitFresh(performance.now())
  const found = table.get(id)
  assert.ok(found !== undefined && found !== 'deleted')
  return found
}

test('create, change, delete: each is what every reader sees when it returns', options, async (t) => {
  const lab = await startLab(t)
  const { writer, openTable } = lab
  const created = written(await writer.create(wanted))
  const elsewhere = await openTable()
  await elsewhere.waitFresh(performance.now())
  assert.deepEqual(elsewhere.get(created.id), created)

  // A second is what another process's table may be old: nothing after the return may use the old record.
  const begunAt = performance.now()
  const paused = written(await writer.update(created.id, { state: 'paused' }, { ifVersion: created.offset }))
  assert.ok(performance.now() - begunAt >= 1_000)
  assert.deepEqual(elsewhere.get(created.id), paused)

  assert.deepEqual(await writer.update(created.id, { state: 'active' }, { ifVersion: created.offset }), { kind: 'conflict', id: created.id })
  assert.equal((await writer.update(created.id, { eventTypes: [] })).kind, 'invalid')
  assert.deepEqual(await writer.delete(created.id), { kind: 'deleted', id: created.id })
  assert.equal(elsewhere.get(created.id), 'deleted')
  assert.deepEqual(await writer.update(created.id, { state: 'active' }), { kind: 'not_found', id: created.id })
  assert.deepEqual(await writer.delete('sub_never'), { kind: 'not_found', id: 'sub_never' })
})

test('of two changes at once one is written, the other is a conflict and leaves no trace', options, async (t) => {
  const lab = await startLab(t)
  const { id } = written(await lab.writer.create(wanted))
  const results = await Promise.all([lab.writer.update(id, { description: 'one' }), lab.writer.update(id, { description: 'two' })])
  assert.deepEqual(results.map(({ kind }) => kind).sort(), ['conflict', 'written'])
  const winner = written(results.find(({ kind }) => kind === 'written')!)
  assert.equal((await present(lab, id)).description, winner.description)
})

test('a delete that meets a change puts the change back', options, async (t) => {
  const lab = await startLab(t)
  const { id } = written(await lab.writer.create(wanted))
  const [changed, deleted] = await Promise.all([lab.writer.update(id, { description: 'kept' }), lab.writer.delete(id)])
  // Both leave in one request, in this order.
  assert.deepEqual([changed.kind, deleted.kind], ['written', 'conflict'])
  assert.equal((await present(lab, id)).description, 'kept')
})

test('writes of other subscriptions are no conflict', options, async (t) => {
  const { writer } = await startLab(t)
  const [one, two] = await Promise.all([writer.create(wanted), writer.create(wanted)])
  const results = await Promise.all([writer.update(written(one).id, { state: 'paused' }), writer.update(written(two).id, { state: 'paused' })])
  assert.deepEqual(results.map(({ kind }) => kind), ['written', 'written'])
})

test('a change based on one that was put back is a conflict; one that was changed again is not', options, async (t) => {
  const lab = await startLab(t)
  const { topic, writer, table } = lab
  const created = written(await writer.create(wanted))
  const { offset: _, appendedAt: __, ...original } = created

  /** Starts a change and, as soon as it can be read, appends what somebody else writes right after. */
  const changeThen = async (description: string, next: (mine: StoredSubscription) => Buffer): Promise<Written> => {
    await table.waitFresh(performance.now())
    const seen = new Promise<void>((resolve) => {
      const unwatch = table.watch(created.id, () => {
        unwatch()
        resolve()
      })
    })
    const changing = writer.update(created.id, { description })
    await seen
    await produceTo(topic, [{ key: created.id, value: next(await present(lab, created.id)) }])
    return changing
  }
  assert.equal((await changeThen('lost', () => encodeSubscription(original))).kind, 'conflict')
  const followed = await changeThen('built on', (mine) => encodeSubscription({ ...mine, state: 'paused', updatedAt: mine.updatedAt + 1 }))
  assert.equal(written(followed).description, 'built on')
})

test('a write that Kafka stored twice is no conflict with itself', options, async (t) => {
  const lab = await startLab(t)
  const { id } = written(await lab.writer.create(wanted))
  // Two writes of the same bytes, one right after the other, as a produce request whose answer was lost leaves them.
  const at = Date.now() + 1_000
  const { update } = lab.writerAt(() => at)
  const results = await Promise.all([update(id, { state: 'paused' }), update(id, { state: 'paused' })])
  assert.deepEqual(results.map(({ kind }) => kind), ['written', 'written'])
  const records = await readTopic(lab.topic)
  assert.equal(records.length, 3)
  assert.ok(records[1]!.value!.equals(records[2]!.value!))
})
