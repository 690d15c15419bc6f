// A service of its own process for run-service.test.ts; what it does wrong is chosen by its argument.
import { setTimeout as sleep } from 'node:timers/promises'
import { runService } from '../../shared/lifecycle/run-service.ts'

const mode = process.argv[2]
const say = (text: string): void => void process.stderr.write(`${text}\n`)
// Holds the process open, as sockets do in a real service.
setInterval(() => {}, 1_000)

await runService({
  name: 'router',
  ...(mode === 'close-hangs' && process.env['POSTHOUSE_DRAIN_TIMEOUT'] ? { closeGraceMs: 300 } : {}),
  start: async ({ config, signal }) => {
    say(`start ${config.kafka.brokers.join()}`)
    if (mode === 'wait-for-kafka') {
      await new Promise((_, reject) => { signal.addEventListener('abort', () => reject(new Error(`gave up: ${signal.reason}`))) })
    }
    if (mode === 'start-fails') throw new Error('cannot start')
    if (mode === 'throws-later') setTimeout(() => { throw new Error('a bug') }, 50)
    if (mode === 'rejects-later') setTimeout(() => void Promise.reject(new Error('a bug')), 50)
    say('running')
    return {
      close: async () => {
        say('closing')
        if (mode === 'close-hangs') await sleep(60_000)
        if (mode === 'close-fails') throw new Error('cannot close')
        await sleep(100)
        say('closed')
      },
      ...(mode === 'consumer-dies' ? { failed: sleep(50).then(() => new Error('the consumer died')) } : {}),
    }
  },
})
