import { setTimeout as delay } from 'node:timers/promises'
import type { Supervisor } from '../dev/supervisor.ts'
import type { Killable } from './options.ts'
import type { SampleServices } from './services.ts'

/** Between a service's being ready and its next kill. */
const livesMs = 4_000
const pollMs = 200

/**
 * Kills a service with -9 again and again until `signal` aborts, each time when it has been at work for a few seconds: its partitions are
 * its own again only when its predecessor's session has ended, and one that is killed before would never do anything.
 */
export async function killAgainAndAgain(name: Killable, supervisor: Supervisor, services: Pick<SampleServices, 'isReady'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (await services.isReady(name)) {
      await delay(livesMs, undefined, { signal }).catch(() => undefined)
      if (!signal.aborted) supervisor.kill(name)
    } else {
      await delay(pollMs, undefined, { signal }).catch(() => undefined)
    }
  }
}
