import type { ConnectionOptions } from 'node:tls'
import type { KafkaSettings } from './kafka-settings.ts'

const mechanisms = { 'PLAIN': 'plain', 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512' } as const

type Sasl = { readonly mechanism: (typeof mechanisms)[keyof typeof mechanisms]; readonly username: string; readonly password: string }

/** What a Kafka client needs to know, in the shape it takes; `log` is passed through, so that whoever connects chooses where it goes. */
export const toKafkaConnection = <Log>(
  { brokers, clientId, tls, sasl }: KafkaSettings, log: Log,
): { readonly brokers: readonly string[]; readonly clientId: string; readonly ssl: ConnectionOptions | false; readonly sasl: Sasl | null; readonly log: Log } => ({
  brokers,
  clientId,
  // Absent, not null: node:tls then uses the authorities it carries.
  ssl: tls === null ? false : Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== null)),
  sasl: sasl === null ? null : { ...sasl, mechanism: mechanisms[sasl.mechanism] },
  log,
})
