import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { readConfig } from '../../shared/config/config.ts'
import { serviceNames, settings } from '../../shared/config/settings.ts'
import { topicNames } from '../../shared/kafka/topics.ts'
import { version } from '../../shared/version.ts'
import { runCli } from '../cli/run-cli.ts'
import { manifests, schemaFaults, type Manifest } from './manifests.ts'

type Labels = Readonly<Record<string, string>>
type Probe = { readonly httpGet: { readonly path: string; readonly port: string } }
type Container = {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly envFrom: readonly { readonly configMapRef?: { readonly name: string }; readonly secretRef?: { readonly name: string; readonly optional?: boolean } }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
}
type Deployment = Manifest & {
  readonly spec: {
    readonly replicas: number
    readonly selector: { readonly matchLabels: Labels }
    readonly template: {
      readonly metadata: { readonly labels: Labels; readonly annotations: Labels }
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly enableServiceLinks: boolean; readonly containers: readonly Container[] }
    }
  }
}
type ScaledObject = Manifest & {
  readonly spec: {
    readonly scaleTargetRef: { readonly name: string }
    readonly minReplicaCount: number
    readonly maxReplicaCount: number
    readonly triggers: readonly { readonly metadata: Labels }[]
  }
}

/** What the tests look at, by kind. */
type Kinds = {
  readonly Deployment: Deployment
  readonly ScaledObject: ScaledObject
  readonly ConfigMap: Manifest & { readonly data: Labels }
  readonly Secret: Manifest & { readonly stringData: Labels }
  readonly PodDisruptionBudget: Manifest & { readonly spec: { readonly selector: { readonly matchLabels: Labels } } }
  readonly Service: Manifest & { readonly spec: { readonly selector: Labels; readonly ports: readonly { readonly targetPort: string }[] } }
  readonly KafkaTopic: Manifest & { readonly spec: Readonly<Record<string, unknown>> }
  readonly Kustomization: Manifest & { readonly resources: readonly string[]; readonly images: readonly object[] }
}

const ofKind = <Kind extends keyof Kinds>(kind: Kind): readonly Kinds[Kind][] =>
  manifests.filter((manifest) => manifest.kind === kind) as readonly Manifest[] as readonly Kinds[Kind][]
const deployments = ofKind('Deployment')
const settingNames = new Set(Object.values(settings).map(({ name }) => name))
const [configMap] = ofKind('ConfigMap')
const environment = configMap!.data
const read = readConfig(environment)
assert.ok('config' in read, JSON.stringify(read))
const { config } = read

test('every resource is as its schema has it', () => {
  const without = new Set<string>()
  for (const manifest of manifests) {
    const faults = schemaFaults(manifest)
    if (faults === null) without.add(manifest.kind)
    else assert.deepEqual(faults, [])
  }
  assert.deepEqual([...without].sort(), ['KafkaTopic', 'Kustomization'])
})

test('the check by schema finds what is wrong, and fields that do not exist', () => {
  const good = deployments[0]!
  const pod = good.spec.template.spec
  const template = { ...good.spec.template, spec: { ...pod, containers: [{ ...pod.containers[0], imag: 'x' }] } }
  const broken = { ...good, spec: { ...good.spec, replicas: 'two', strateg: {}, template } }
  const faults = schemaFaults(broken) ?? []
  for (const part of ['/spec/replicas', '/spec/strateg is no field', '/spec/template/spec/containers/0/imag is no field']) {
    assert.ok(faults.some((fault) => fault.includes(part)), `${part} in ${JSON.stringify(faults)}`)
  }
})

test('there is a deployment of each service, and it runs that service', () => {
  assert.deepEqual(deployments.map(({ metadata }) => metadata.name).sort(), serviceNames.map((name) => `posthouse-${name}`).sort())
  for (const { metadata, spec } of deployments) {
    const { containers } = spec.template.spec
    assert.equal(containers.length, 1)
    assert.equal(`posthouse-${containers[0]!.name}`, metadata.name)
    assert.deepEqual(containers[0]!.args, ['run', containers[0]!.name])
    assert.equal(containers[0]!.image, `posthouse:${version}`)
    assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels)
  }
})

test('probes, ports and the time to stop are those of the services', () => {
  for (const { spec } of deployments) {
    const [container] = spec.template.spec.containers
    assert.deepEqual(container!.ports, [{ name: 'http', containerPort: config.http.port }])
    assert.deepEqual(container!.readinessProbe.httpGet, { path: '/readyz', port: 'http' })
    assert.deepEqual(container!.livenessProbe.httpGet, { path: '/livez', port: 'http' })
    assert.equal(spec.template.metadata.annotations['prometheus.io/port'], String(config.http.port))
    assert.equal(spec.template.spec.terminationGracePeriodSeconds, 45)
    assert.ok(spec.template.spec.terminationGracePeriodSeconds * 1_000 >= config.drainTimeoutMs + 10_000)
  }
})

test('settings are ones there are, secret ones stand in the secret only', () => {
  const secret = ofKind('Secret')[0]!
  for (const name of [...Object.keys(environment), ...Object.keys(secret.stringData)]) assert.ok(settingNames.has(name), name)
  const secretNames = new Set(Object.values(settings).filter(({ isSecret }) => isSecret).map(({ name }) => name))
  assert.deepEqual(Object.keys(environment).filter((name) => secretNames.has(name)), [])
  // An example that was applied as it is must not open anything.
  assert.deepEqual(Object.values(secret.stringData).filter((value) => value !== ''), [])
  for (const { spec } of deployments) {
    assert.deepEqual(spec.template.spec.containers[0]!.envFrom, [
      { configMapRef: { name: configMap!.metadata.name } }, { secretRef: { name: secret.metadata.name, optional: true } },
    ])
  }
})

test('budgets, services and scaling mean pods there are', () => {
  const labelsOf = (name: string): Labels => deployments.find(({ metadata }) => metadata.name === name)!.spec.template.metadata.labels
  const budgets = ofKind('PodDisruptionBudget')
  assert.deepEqual(budgets.map(({ metadata }) => metadata.name).sort(), deployments.map(({ metadata }) => metadata.name).sort())
  for (const { metadata, spec } of budgets) assert.deepEqual(spec.selector.matchLabels, labelsOf(metadata.name))
  const [service] = ofKind('Service')
  assert.deepEqual(service!.spec.selector, labelsOf(service!.metadata.name))
  assert.equal(service!.spec.ports[0]!.targetPort, 'http')
})

test('scaling looks at the topics, groups and partitions there are', () => {
  const { deliveries } = topicNames(config.topics.prefix)
  const wanted: Readonly<Record<string, readonly [group: string, topic: string]>> = {
    'posthouse-router': [`${config.groupPrefix}.router`, config.events.topics[0]!],
    'posthouse-delivery': [`${config.groupPrefix}.delivery`, deliveries],
  }
  const scaled = ofKind('ScaledObject')
  assert.deepEqual(scaled.map(({ spec }) => spec.scaleTargetRef.name), Object.keys(wanted))
  for (const { metadata, spec } of scaled) {
    const target = deployments.find(({ metadata: { name } }) => name === spec.scaleTargetRef.name)
    assert.ok(target && target.metadata.name === metadata.name)
    assert.equal(spec.minReplicaCount, target.spec.replicas)
    assert.equal(spec.maxReplicaCount, config.topics.partitions)
    const { bootstrapServers, consumerGroup, topic } = spec.triggers[0]!.metadata
    assert.deepEqual([consumerGroup, topic], wanted[metadata.name])
    assert.equal(bootstrapServers, environment['KAFKA_BROKERS'])
  }
  // The names of the groups, where they are made.
  for (const name of ['router', 'delivery']) {
    assert.match(readFileSync(join(projectRoot, `services/${name}/${name}.ts`), 'utf8'), new RegExp(`groupId = \`\\$\\{options\\.groupPrefix\\}\\.${name}\``))
  }
})

test('the topics for Strimzi are what the command prints', async () => {
  const { code, stdout } = await runCli(['topics', 'provision', '--with-events', '--format', 'strimzi'], { env: environment })
  assert.equal(code, 0)
  const committed = readFileSync(join(projectRoot, 'deploy/kubernetes/kafka-topics.yaml'), 'utf8')
  assert.equal(committed.slice(committed.indexOf('---\n')), stdout)
  for (const topic of ofKind('KafkaTopic')) {
    assert.match(topic.metadata.name, /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/)
    assert.deepEqual(Object.keys(topic.spec).filter((field) => !['topicName', 'partitions', 'replicas', 'config'].includes(field)), [])
    assert.equal(topic.spec['replicas'], config.topics.replicationFactor)
  }
})

test('the kustomization has every resource that needs no operator and no values of yours', () => {
  const [kustomization] = ofKind('Kustomization')
  const apart = ['kustomization.yaml', 'secret.example.yaml', 'scaling.yaml', 'kafka-topics.yaml']
  assert.deepEqual(new Set(kustomization!.resources), new Set(manifests.map(({ file }) => file).filter((file) => !apart.includes(file))))
  assert.deepEqual(kustomization!.images, [{ name: 'posthouse', newTag: version }])
})
