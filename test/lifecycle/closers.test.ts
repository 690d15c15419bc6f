import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClosers } from '../../shared/lifecycle/closers.ts'

test('what was opened last is closed first, one after the other', async () => {
  const order: string[] = []
  const closers = createClosers()
  closers.add('producer', async () => { order.push('producer') })
  closers.add('consumer', async () => {
    order.push('consumer begins')
    await new Promise(setImmediate)
    order.push('consumer ends')
  })
  await closers.close()
  assert.deepEqual(order, ['consumer begins', 'consumer ends', 'producer'])
})

test('closing again joins; nothing is closed twice', async () => {
  let closed = 0
  const closers = createClosers()
  closers.add('one', async () => { closed++ })
  await Promise.all([closers.close(), closers.close()])
  await closers.close()
  assert.equal(closed, 1)
})

test('an error keeps nothing else open and is thrown at the end, with its name', async () => {
  let closed = 0
  const closers = createClosers()
  closers.add('first', () => { closed++ })
  closers.add('second', async () => { throw new Error('stuck') })
  closers.add('third', () => { throw new Error('broken') })
  await assert.rejects(closers.close(), /third could not be closed: broken; second could not be closed: stuck/)
  assert.equal(closed, 1)
})

test('what is added after closing began is closed too', async () => {
  let closed = 0
  const closers = createClosers()
  closers.add('slow', () => new Promise((resolve) => setImmediate(resolve)))
  const closing = closers.close()
  closers.add('late', () => { closed++ })
  await closing
  await closers.close()
  closers.add('later', () => { closed++ })
  await closers.close()
  assert.equal(closed, 2)
})
