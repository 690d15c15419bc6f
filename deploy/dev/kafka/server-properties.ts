export type BrokerListeners = {
  readonly brokerPort: number
  readonly controllerPort: number
}

/**
 * The configuration of one node that is broker and controller, on loopback only, sized for a laptop: 153 MB resident.
 * `properties` are added and win.
 */
export function serverProperties(
  { brokerPort, controllerPort }: BrokerListeners, logFolder: string, properties: Readonly<Record<string, string>>,
): string {
  const all: Record<string, string | number | boolean> = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    'listeners': `PLAINTEXT://127.0.0.1:${brokerPort},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${brokerPort}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': logFolder,

    // A mistyped topic name is an error, as in a cluster that is looked after.
    'auto.create.topics.enable': false,
    'default.replication.factor': 1,
    'min.insync.replicas': 1,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'share.coordinator.state.topic.num.partitions': 1,

    // A first member waits 3 s by default for others that may come.
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1_000,
    // A broker that took its leave serves 1.7 s after its next start; one that did not is fenced until its session ends.
    'controlled.shutdown.enable': true,

    'num.network.threads': 1,
    'num.io.threads': 2,
    'background.threads': 2,
    'log.cleaner.threads': 1,
    // The default of 128 MB does not fit into the heap.
    'log.cleaner.dedupe.buffer.size': 4_194_304,
    'log.cleaner.backoff.ms': 500,
    'log.index.size.max.bytes': 1_048_576,
    'log.segment.bytes': 16_777_216,
    'log.retention.check.interval.ms': 1_000,
    'log.initial.task.delay.ms': 500,
    ...properties,
  }
  return Object.entries(all).map(([name, value]) => `${name}=${value}\n`).join('')
}

/**
 * A broker that was killed is fenced until its session ends, and serves nothing when it is back before: with these it serves again
 * after 4 s instead of 12 s. For tests of restarts; not the default, as a machine that stalls for 2 s would fence its own broker.
 */
export const quickRestartProperties: Readonly<Record<string, string>> = {
  'broker.session.timeout.ms': '2000',
  'broker.heartbeat.interval.ms': '500',
}
