import { readAuthorities, readClientCertificate, type ReadText, type Report } from './files.ts'
import type { Values } from './settings.ts'

export type SaslMechanism = 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512'

/** How Kafka is reached. TLS files are read here, once, so that a missing one is found at the start and not at the first connection. */
export type KafkaSettings = {
  /** Empty only where Kafka was said not to be needed. */
  readonly brokers: readonly string[]
  readonly clientId: string
  /** null: no TLS. Each null inside: what Node.js does by itself. PEM text, not paths. */
  readonly tls: { readonly ca: string | null; readonly cert: string | null; readonly key: string | null; readonly passphrase: string | null } | null
  readonly sasl: { readonly mechanism: SaslMechanism; readonly username: string; readonly password: string } | null
}

/** The Kafka part of the configuration; contradictions and unreadable files go to `report`. */
export const kafkaSettings = (
  values: Values, { requireKafka, readText, report, warn }: { requireKafka: boolean; readText: ReadText; report: Report; warn: Report },
): KafkaSettings => {
  if (requireKafka && values.brokers === null) report('KAFKA_BROKERS is not set: give the brokers as host:port, separated by commas')
  const usesTls = values.securityProtocol === 'SSL' || values.securityProtocol === 'SASL_SSL'
  return {
    brokers: values.brokers ?? [],
    clientId: values.clientId,
    tls: usesTls ? tlsSettings(values, readText, report) : refuseUnusedTls(values, report),
    sasl: saslSettings(values, usesTls, report, warn),
  }
}

const tlsSettings = (values: Values, readText: ReadText, report: Report): NonNullable<KafkaSettings['tls']> => {
  const ca = readAuthorities('KAFKA_TLS_CA_FILE', values.tlsCaFile, readText, report)
  const certificate = readClientCertificate(
    { certFile: values.tlsCertFile, keyFile: values.tlsKeyFile, passphrase: values.tlsKeyPassword }, readText, report)
  return { ca, cert: certificate?.cert ?? null, key: certificate?.key ?? null, passphrase: certificate?.passphrase ?? null }
}

/** Files given while the protocol has no TLS: whoever set them believes the connection is encrypted, so this is no warning. */
const refuseUnusedTls = (values: Values, report: Report): null => {
  for (const [name, value] of [
    ['KAFKA_TLS_CA_FILE', values.tlsCaFile], ['KAFKA_TLS_CERT_FILE', values.tlsCertFile],
    ['KAFKA_TLS_KEY_FILE', values.tlsKeyFile], ['KAFKA_TLS_KEY_PASSWORD', values.tlsKeyPassword],
  ] as const) {
    if (value !== null) {
      report(`${name} is set but KAFKA_SECURITY_PROTOCOL is ${values.securityProtocol}, which has no TLS: set it to SSL or SASL_SSL, or remove ${name}`)
    }
  }
  return null
}

const saslSettings = (values: Values, usesTls: boolean, report: Report, warn: Report): KafkaSettings['sasl'] => {
  const { saslMechanism: mechanism, saslUsername: username, saslPassword: password, securityProtocol } = values
  const given = { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password }
  const usesSasl = securityProtocol === 'SASL_PLAINTEXT' || securityProtocol === 'SASL_SSL'
  for (const [name, value] of Object.entries(given)) {
    if (usesSasl && value === null) report(`${name} is not set: KAFKA_SECURITY_PROTOCOL ${securityProtocol} needs it`)
    if (!usesSasl && value !== null) {
      report(`${name} is set but KAFKA_SECURITY_PROTOCOL is ${securityProtocol}, which has no SASL: set it to SASL_SSL or SASL_PLAINTEXT, or remove ${name}`)
    }
  }
  if (!usesSasl || mechanism === null || username === null || password === null) return null
  if (!usesTls && mechanism === 'PLAIN') warn('KAFKA_SECURITY_PROTOCOL SASL_PLAINTEXT with mechanism PLAIN sends the password unencrypted: prefer SASL_SSL')
  return { mechanism, username, password }
}
