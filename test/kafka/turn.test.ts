import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { takeTurn } from '../../shared/kafka/turn.ts'
import { createTestTopic, deleteGroupAfter, kafkaForTests, testConnection, testTopic } from '../support/kafka.ts'

const { brokers, skip } = kafkaForTests()

test('one at a time: whoever comes while it is held goes away without it, and the next one after its end has it', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'turn', { partitions: 3 })
  const groupId = testTopic('turn')
  deleteGroupAfter(t, groupId)
  const options = { connection: testConnection(), groupId, topic }

  const first = await takeTurn(options)
  assert.ok(first)
  assert.ok(await first.isHeld())
  for (let round = 0; round < 3; round += 1) assert.equal(await takeTurn(options), null)
  assert.deepEqual(await Promise.all([takeTurn(options), takeTurn(options)]), [null, null])
  assert.ok(await first.isHeld(), 'those who came did not take it away')
  await first.end()
  assert.equal(await first.isHeld(), false)

  const next = await takeTurn(options)
  assert.ok(next)
  assert.ok(await next.isHeld())
  await next.end()
})

test('of many who want it at once one gets it', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'turns', { partitions: 1 })
  const groupId = testTopic('turns')
  deleteGroupAfter(t, groupId)
  const turns = await Promise.all(Array.from({ length: 4 }, () => takeTurn({ connection: testConnection(), groupId, topic })))
  const held = turns.filter((turn) => turn !== null)
  assert.equal(held.length, 1)
  assert.ok(await held[0]!.isHeld())
  await held[0]!.end()
})

test('somebody who was killed loses it when his session is over, and one who was stopped sees that he has lost it', { skip }, async (t) => {
  const topic = await createTestTopic(t, 'turn-killed', { partitions: 2 })
  const groupId = testTopic('turn-killed')
  deleteGroupAfter(t, groupId)
  const script = `
    import { takeTurn } from '${new URL('../../shared/kafka/turn.ts', import.meta.url).href}'
    const connection = { brokers: ${JSON.stringify(brokers)}, clientId: 'holder', ssl: false, sasl: null, log: () => {} }
    const turn = await takeTurn({ connection, groupId: '${groupId}', topic: '${topic}', sessionTimeoutMs: 2000 })
    console.log(await turn?.isHeld() ? 'held' : 'refused')
    let lookedAt = performance.now()
    for (;;) {
      const isHeld = await turn.isHeld()
      const stoodStill = performance.now() - lookedAt > 1500
      if (!isHeld) { console.log('lost'); process.exit(0) }
      if (stoodStill) console.log('believes that it is held')
      lookedAt = performance.now()
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  `
  const holder = () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    child.stdout.setEncoding('utf8')
    return child
  }
  const options = { connection: testConnection(), groupId, topic, sessionTimeoutMs: 2_000 }

  const killed = holder()
  assert.match(String(await once(killed.stdout, 'data')), /held/)
  killed.kill('SIGKILL')
  const second = await takeTurn(options)
  assert.ok(second)
  assert.ok(await second.isHeld(), 'the dead one does not keep it')
  await second.end()

  const stopped = holder()
  assert.match(String(await once(stopped.stdout, 'data')), /held/)
  stopped.kill('SIGSTOP')
  const third = await takeTurn(options)
  assert.ok(third)
  assert.ok(await third.isHeld())
  stopped.kill('SIGCONT')
  assert.equal(String(await once(stopped.stdout, 'data')), 'lost\n')
  assert.ok(await third.isHeld())
  await third.end()
})
