import type { TopicDifference } from './provision.ts'
import type { TopicSpec } from './topics.ts'

/** The commands of Kafka's own tools that carry out a plan, one a line, for clusters on which posthouse may not create topics. */
export function formatAsCommands(plan: readonly TopicDifference[], bootstrapServer: string): string {
  const server = `--bootstrap-server ${quoted(bootstrapServer)}`
  const lines = plan.flatMap((difference) => (difference.kind === 'config' ? [] : [
    difference.kind === 'missing'
      ? `kafka-topics.sh ${server} --create --if-not-exists ${createArguments(difference.topic)}`
      : `kafka-topics.sh ${server} --alter --topic ${quoted(difference.name)} --partitions ${difference.wants}`,
  ]))
  const drifted = Map.groupBy(plan.filter((difference) => difference.kind === 'config'), ({ name }) => name)
  for (const [name, differences] of drifted) {
    // kafka-configs splits at commas, except within brackets.
    const values = differences.map(({ key, wants }) => `${key}=${wants.includes(',') ? `[${wants}]` : wants}`).join(',')
    lines.push(`kafka-configs.sh ${server} --alter --entity-type topics --entity-name ${quoted(name)} --add-config ${quoted(values)}`)
  }
  return lines.map((line) => `${line}\n`).join('')
}

/** `KafkaTopic` resources for Strimzi's topic operator (API v1, Strimzi 0.49 and later), as one YAML stream. */
export function formatAsStrimzi(topics: readonly TopicSpec[], clusterName: string): string {
  return topics.map(({ name, partitions, replication, config }) => [
    '---',
    'apiVersion: kafka.strimzi.io/v1',
    'kind: KafkaTopic',
    'metadata:',
    `  name: ${resourceName(name)}`,
    '  labels:',
    `    strimzi.io/cluster: ${JSON.stringify(clusterName)}`,
    'spec:',
    `  topicName: ${JSON.stringify(name)}`,
    `  partitions: ${partitions}`,
    ...(replication > 0 ? [`  replicas: ${replication}`] : []), // Left out: the brokers' default.
    ...(Object.keys(config).length > 0 ? ['  config:'] : []),
    ...Object.entries(config).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}`),
  ].map((line) => `${line}\n`).join('')).join('')
}

function createArguments({ name, partitions, replication, config }: TopicSpec): string {
  return [
    `--topic ${quoted(name)}`,
    `--partitions ${partitions}`,
    ...(replication > 0 ? [`--replication-factor ${replication}`] : []),
    ...Object.entries(config).map(([key, value]) => `--config ${quoted(`${key}=${value}`)}`),
  ].join(' ')
}

/** For a POSIX shell: as it is where nothing needs quoting. */
function quoted(text: string): string {
  return /^[\w.,:=@%/+-]+$/.test(text) ? text : `'${text.replaceAll('\'', '\'\\\'\'')}'`
}

/** A topic's name as a Kubernetes name (RFC 1123): lower case letters, digits, dots and hyphens. */
function resourceName(topic: string): string {
  return topic.toLowerCase().replaceAll('_', '-').replaceAll(/^[.-]+|[.-]+$/g, '')
}
