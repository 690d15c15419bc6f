import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { readConfig, type Config, type Environment } from '../../shared/config/config.ts'
import { toKafkaConnection } from '../../shared/config/kafka-connection.ts'
import { expectedInstead, hostAndPort, listOf } from '../../shared/config/parsers.ts'
import { printConfig } from '../../shared/config/print-config.ts'
import { settings, type Setting } from '../../shared/config/settings.ts'
import { validateDefaults } from '../../shared/domain/policy-check.ts'
import { defaultPolicy } from '../../shared/domain/policy.ts'
import type { KafkaConnection } from '../../shared/kafka/client.ts'
import { canMakeCertificates, makeCertificates } from '../support/certificates.ts'

const minimal = { KAFKA_BROKERS: 'kafka-1:9092' }

const accepted = (env: Environment): { config: Config; warnings: readonly string[] } => {
  const result = readConfig({ ...minimal, ...env })
  assert.ok('config' in result, `refused: ${JSON.stringify(result)}`)
  return result
}
const problemsOf = (env: Environment, base: Environment = minimal): readonly string[] => {
  const result = readConfig({ ...base, ...env })
  return 'problems' in result ? result.problems : []
}
const oneProblem = (env: Environment, pattern: RegExp): void => {
  const problems = problemsOf(env)
  assert.equal(problems.length, 1, problems.join('\n'))
  assert.match(problems[0]!, pattern)
}

test('an environment with brokers alone gives the published defaults, without a warning', () => {
  const { config, warnings } = accepted({})
  assert.deepEqual(warnings, [])
  assert.deepEqual(config.kafka, { brokers: ['kafka-1:9092'], clientId: 'posthouse', tls: null, sasl: null })
  assert.deepEqual(config.topics, { prefix: 'webhooks.', partitions: 12, tierPartitions: 3, replicationFactor: null })
  assert.deepEqual(config.events.topics, ['webhooks.events'])
  assert.deepEqual(config.events.type, { kind: 'field', name: 'type' })
  const [s, m, h] = [1_000, 60_000, 3_600_000]
  assert.deepEqual(config.policy, defaultPolicy)
  assert.deepEqual(config.tiersMs, [10 * s, m, 5 * m, 30 * m, 2 * h, 8 * h, 24 * h, 48 * h])
  assert.equal(config.deliveryExpiryMs, 14 * 24 * h)
  assert.equal(config.delivery.windowBytes, 256 * 1024 * 1024)
  assert.equal(config.safety.allowsHttp, false)
  assert.deepEqual(config.http, { port: 9400, host: '0.0.0.0' })
})

test('the configuration is frozen to its leaves', () => {
  const { config } = accepted({})
  assert.throws(() => { (config.delivery as { maxInFlight: number }).maxInFlight = 1 }, TypeError)
  assert.throws(() => { (config.policy.scheduleMs as number[]).push(1) }, TypeError)
})

test('every mistake is reported at once, each with its name, what was found and what to give', () => {
  const problems = problemsOf({
    KAFKA_SECURITY_PROTOCOL: 'TLS', POSTHOUSE_HTTP_PORT: '94000', POSTHOUSE_DRAIN_TIMEOUT: '35', POSTHOUSE_WINDOW_BYTES: '1KB',
    POSTHOUSE_RETRY_SCHEDULE: '1m,,5m', POSTHOUSE_ALLOW_HTTP: 'maybe', POSTHOUSE_HTTP_PROT: '9400', SCHEMA_REGISTRY_URL: 'http://registry',
  }, {})
  for (const name of [
    'KAFKA_BROKERS is not set', 'KAFKA_SECURITY_PROTOCOL is "TLS": give one of PLAINTEXT', 'POSTHOUSE_HTTP_PORT is "94000": give a whole number',
    'POSTHOUSE_DRAIN_TIMEOUT is "35": give a duration', 'POSTHOUSE_WINDOW_BYTES is "1KB": give a size', 'POSTHOUSE_RETRY_SCHEDULE is "1m,,5m"',
    'POSTHOUSE_ALLOW_HTTP is "maybe": give true or false', 'POSTHOUSE_HTTP_PROT is not a setting of posthouse: did you mean POSTHOUSE_HTTP_PORT?',
    'SCHEMA_REGISTRY_URL is set, but',
  ]) assert.ok(problems.some((problem) => problem.startsWith(name)), `${name} not among:\n${problems.join('\n')}`)
  assert.equal(problems.length, 9, problems.join('\n'))
})

test('in a list the first entry that is wrong is quoted', () => {
  oneProblem({ POSTHOUSE_TIERS: '1m, 5 m,x' }, /give a list separated by commas, each a duration from 1ms to 14d, such as 30s, 5m or 2h \("5 m" is not\)$/)
  const { error } = listOf(hostAndPort).safeParse('hunter2')
  assert.equal(expectedInstead(error!, 'hunter2', true), 'a list separated by commas, each host:port, such as kafka-1:9092', 'of a secret nothing is quoted')
})

test('an empty variable counts as unset, and blanks around a value do not matter', () => {
  assert.equal(accepted({ POSTHOUSE_HTTP_PORT: '', POSTHOUSE_TOPIC_PREFIX: ' hooks. ' }).config.topics.prefix, 'hooks.')
})

test('brokers are not needed by commands that stand alone', () => {
  assert.ok('config' in readConfig({}, { requireKafka: false }))
  assert.match(problemsOf({}, {})[0]!, /^KAFKA_BROKERS is not set/)
})

test('names: near misses and the names other tools use are pointed out, what belongs to others is left alone', () => {
  oneProblem({ POSTHOUSE_ATEMPT_TIMEOUT: '3s' }, /did you mean POSTHOUSE_ATTEMPT_TIMEOUT\?/)
  oneProblem({ POSTHOUSE_SOMETHING_ELSE_ENTIRELY: 'x' }, /is not a setting of posthouse: remove it/)
  oneProblem({ KAFKA_SASL_USERNAM: 'x' }, /did you mean KAFKA_SASL_USERNAME\?/)
  assert.match(problemsOf({ KAFKA_BOOTSTRAP_SERVERS: 'kafka:9092' }, {})[0]!, /did you mean KAFKA_BROKERS\?/)
  accepted({ KAFKA_HEAP_OPTS: '-Xmx1g', POSTHOUSE_TEST_KAFKA: '127.0.0.1:9092', KAFKA_BOOTSTRAP_SERVERS: 'kafka:9092' })
})

test('what Kubernetes puts into a pod for a service called posthouse-router is not mistaken for a setting', () => {
  accepted({
    POSTHOUSE_ROUTER_SERVICE_HOST: '10.0.0.1', POSTHOUSE_ROUTER_SERVICE_PORT: '9400', POSTHOUSE_ROUTER_SERVICE_PORT_METRICS: '9400',
    POSTHOUSE_ROUTER_PORT: 'tcp://10.0.0.1:9400', POSTHOUSE_ROUTER_PORT_9400_TCP: 'tcp://10.0.0.1:9400', POSTHOUSE_ROUTER_PORT_9400_TCP_ADDR: '10.0.0.1',
  })
})

test('contradictions between settings are refused', () => {
  oneProblem({ POSTHOUSE_ENDPOINT_CAP_START: '300' }, /^POSTHOUSE_ENDPOINT_CAP_START \(300\) is more than POSTHOUSE_ENDPOINT_CAP_MAX \(256\)/)
  oneProblem({ POSTHOUSE_TIERS: '10s' }, /^POSTHOUSE_TIERS has one tier/)
  oneProblem({ POSTHOUSE_TIERS: '10s,5m,1m' }, /^POSTHOUSE_TIERS has 1m after 5m/)
  oneProblem({ POSTHOUSE_TIERS: '60s,1m,5m' }, /nothing appears twice/)
  oneProblem({ POSTHOUSE_RETRY_MAX_ATTEMPTS: '9' }, /^POSTHOUSE_RETRY_MAX_ATTEMPTS is 9 but POSTHOUSE_RETRY_SCHEDULE has 7 waits/)
  oneProblem({ POSTHOUSE_RETRY_SCHEDULE: '7d,7d' }, /^the retries of the default policy may take 15\.4 days/)
  oneProblem({ POSTHOUSE_RETRY_BASE: '2h', POSTHOUSE_RETRY_MAX: '1h' }, /^POSTHOUSE_RETRY_BASE \(2h\) is longer than POSTHOUSE_RETRY_MAX \(1h\)/)
  oneProblem({ POSTHOUSE_EVENT_TYPE_CONSTANT: 'a.b', POSTHOUSE_EVENT_TYPE_FROM_TOPIC: 'true' }, /exclude each other/)
  oneProblem({ POSTHOUSE_EVENT_TYPE_CONSTANT: 'posthouse.mine' }, /^POSTHOUSE_EVENT_TYPE_CONSTANT is "posthouse.mine"/)
})

test('the default policy follows from the settings, and what is accepted passes the check of policies', () => {
  const { policy } = accepted({ POSTHOUSE_RETRY_MAX_ATTEMPTS: '3' }).config
  assert.deepEqual([policy.maxAttempts, policy.scheduleMs], [3, [60_000, 300_000]])
  const exponential = accepted({ POSTHOUSE_RETRY_STRATEGY: 'exponential' }).config.policy
  assert.deepEqual([exponential.adaptive, exponential.maxAttempts], [true, 8])
  const durations = fc.constantFrom('1s', '1m', '2h', '24h', '3d')
  fc.assert(fc.property(fc.record({
    POSTHOUSE_RETRY_STRATEGY: fc.constantFrom('standard', 'exponential'), POSTHOUSE_RETRY_SCHEDULE: fc.array(durations, { minLength: 1, maxLength: 9 }).map(String),
    POSTHOUSE_RETRY_BASE: durations, POSTHOUSE_RETRY_MAX: durations, POSTHOUSE_RETRY_MAX_ATTEMPTS: fc.constantFrom('', '1', '5', '12', '100'),
    POSTHOUSE_RETRY_ADAPTIVE: fc.constantFrom('', 'true', 'false'), POSTHOUSE_RETRY_JITTER: fc.constantFrom('additive', 'full', 'equal', 'decorrelated'),
  }), (env) => {
    const result = readConfig({ ...minimal, ...env })
    if ('config' in result) assert.deepEqual(validateDefaults(result.config.policy), [], JSON.stringify(env))
  }), { numRuns: 300 })
})

test('a value that could not be read is not judged beside the others', () => {
  oneProblem({ POSTHOUSE_ENDPOINT_CAP_MAX: 'many', POSTHOUSE_ENDPOINT_CAP_START: '300' }, /^POSTHOUSE_ENDPOINT_CAP_MAX is "many"/)
})

test('risky pairs are warnings', () => {
  const warned = (env: Environment, pattern: RegExp): void => {
    const { warnings } = accepted(env)
    assert.equal(warnings.length, 1, warnings.join('\n'))
    assert.match(warnings[0]!, pattern)
  }
  warned({ POSTHOUSE_DELIVERY_EXPIRY: '1d' }, /the last attempts may never be made/)
  warned({ POSTHOUSE_DRAIN_TIMEOUT: '5s' }, /a stop cuts slow requests off/)
  warned({ POSTHOUSE_MAX_IN_FLIGHT: '100' }, /one slow endpoint may take every request/)
  warned({ POSTHOUSE_ALLOW_HTTP: 'true' }, /unencrypted/)
  warned({ POSTHOUSE_RETRY_TIERS: 'soon,15m' }, /POSTHOUSE_RETRY_TIERS has 15m/)
  warned({
    KAFKA_SECURITY_PROTOCOL: 'SASL_PLAINTEXT', KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p',
  }, /unencrypted/)
})

test('lists of tiers are read in the spelling topics have', () => {
  assert.deepEqual(accepted({ POSTHOUSE_RETRY_TIERS: 'soon, 60s,24h' }).config.servedTiers, ['soon', '1m', '24h'])
})

test('where an input topic starts: a time must name its zone', () => {
  assert.deepEqual(accepted({ POSTHOUSE_EVENTS_START: '2026-01-31T08:00:00+01:00' }).config.events.start, { kind: 'time', atMs: Date.UTC(2026, 0, 31, 7) })
  assert.deepEqual(accepted({ POSTHOUSE_EVENTS_START: '2026-01-31T08:00Z' }).config.events.start, { kind: 'time', atMs: Date.UTC(2026, 0, 31, 8) })
  oneProblem({ POSTHOUSE_EVENTS_START: '2026-01-31T08:00:00' }, /a time with its zone/)
  oneProblem({ POSTHOUSE_EVENTS_START: '2026-02-30T08:00:00Z' }, /a time with its zone/)
  oneProblem({ POSTHOUSE_EVENTS_START: '2026-13-31T08:00:00Z' }, /a time with its zone/)
})

test('SASL needs all of its parts and a protocol that uses them; the password appears nowhere', () => {
  const password = 'correct horse battery'
  const problems = problemsOf({ KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512', KAFKA_SASL_PASSWORD: password })
  assert.equal(problems.length, 2)
  assert.ok(problems.every((problem) => problem.includes('KAFKA_SECURITY_PROTOCOL is PLAINTEXT')))
  assert.equal(problemsOf({ KAFKA_SECURITY_PROTOCOL: 'SASL_SSL' }).length, 3)
  const env = { KAFKA_SECURITY_PROTOCOL: 'SASL_SSL', KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512', KAFKA_SASL_USERNAME: 'user', KAFKA_SASL_PASSWORD: password }
  // The type says that what this returns is what Kafka clients take.
  const connection: KafkaConnection = toKafkaConnection(accepted(env).config.kafka, () => {})
  assert.deepEqual(connection.sasl, { mechanism: 'scram-sha-512', username: 'user', password })
  assert.deepEqual(connection.ssl, {})
  assert.ok(!JSON.stringify([problems, printConfig(env)]).includes(password))
  assert.equal(printConfig(env).find(({ name }) => name === 'KAFKA_SASL_PASSWORD')?.value, '[set]')
})

test('certificate files are read once, at the start, and what is wrong with them is said', { skip: !canMakeCertificates && 'no openssl here' }, () => {
  const { authority, valid, selfSigned } = makeCertificates()
  const files: Record<string, string> = { '/ca': authority, '/cert': valid.cert, '/key': valid.key, '/other-key': selfSigned.key, '/text': 'hello' }
  const readText = (path: string): string => {
    const text = files[path]
    if (text === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return text
  }
  const read = (env: Environment) => readConfig({ ...minimal, ...env }, { readText })
  const good = read({ KAFKA_SECURITY_PROTOCOL: 'SSL', KAFKA_TLS_CA_FILE: '/ca', KAFKA_TLS_CERT_FILE: '/cert', KAFKA_TLS_KEY_FILE: '/key', POSTHOUSE_CA_FILE: '/ca' })
  assert.ok('config' in good)
  assert.deepEqual(toKafkaConnection(good.config.kafka, null).ssl, { ca: authority, cert: valid.cert, key: valid.key })
  assert.equal(good.config.safety.endpointCa, authority)

  const refused = (env: Environment, pattern: RegExp): void => {
    const result = read({ KAFKA_SECURITY_PROTOCOL: 'SSL', ...env })
    assert.ok('problems' in result)
    assert.equal(result.problems.length, 1, result.problems.join('\n'))
    assert.match(result.problems[0]!, pattern)
    assert.ok(!result.problems[0]!.includes('PRIVATE KEY'))
  }
  refused({ KAFKA_TLS_CA_FILE: '/gone' }, /^KAFKA_TLS_CA_FILE names \/gone, which could not be read \(ENOENT\)/)
  refused({ KAFKA_TLS_CA_FILE: '/text' }, /holds no readable certificate/)
  refused({ POSTHOUSE_CA_FILE: '/key' }, /^POSTHOUSE_CA_FILE names \/key, which holds no readable certificate/)
  refused({ KAFKA_TLS_CERT_FILE: '/cert' }, /belong together/)
  refused({ KAFKA_TLS_CERT_FILE: '/cert', KAFKA_TLS_KEY_FILE: '/other-key' }, /cannot be used together/)
  refused({ KAFKA_SECURITY_PROTOCOL: 'PLAINTEXT', KAFKA_TLS_CA_FILE: '/ca' }, /which has no TLS/)
})

test('config print shows every setting once, with its source', () => {
  const rows = printConfig({ POSTHOUSE_HTTP_PORT: '9500', POSTHOUSE_LOG_LEVEL: '' })
  assert.equal(new Set(rows.map(({ name }) => name)).size, Object.keys(settings).length)
  assert.deepEqual(rows.filter(({ source }) => source === 'environment').map(({ name, value }) => [name, value]), [['POSTHOUSE_HTTP_PORT', '9500']])
  assert.equal(rows.find(({ name }) => name === 'POSTHOUSE_EVENTS_TOPICS')?.value, '(<topic prefix>events)')
})

test('each default is read by the check of its own setting', () => {
  for (const { name, schema, defaultText, whenUnset } of Object.values(settings) as Setting<unknown>[]) {
    if (defaultText === null) assert.ok(whenUnset, `${name} says what happens without it`)
    else assert.ok(schema.safeParse(defaultText).success, `${name}=${defaultText}`)
  }
})

test('no text in any variable makes reading throw', () => {
  const names = Object.values(settings).map(({ name }) => name).filter((name) => !name.endsWith('_FILE'))
  const text = fc.oneof(fc.string(), fc.constantFrom('0', '-1', '1e9', '10.0.0.0/8', ',', '1h,2h', '::', '::/0', '[::1]:80', '1.2.3.4/33', '99999999999d'))
  fc.assert(fc.property(fc.dictionary(fc.constantFrom(...names), text, { maxKeys: 6 }), (env) => {
    const result = readConfig({ ...minimal, ...env })
    assert.ok('config' in result || result.problems.length > 0)
  }), { numRuns: 500 })
})

test('tokens of the admin service come from both settings, and none is ever quoted', () => {
  const files: Readonly<Record<string, string>> = { '/tokens': '# of the application\nfile-token-of-24-letters\n\nlist-token-of-24-letters\n', '/short': 'good-token-of-24-letters\nshorty\n', '/empty': '\n' }
  const readText = (path: string): string => {
    const text = files[path]
    if (text === undefined) throw Object.assign(new Error('not there'), { code: 'ENOENT' })
    return text
  }
  const read = (env: Environment) => readConfig({ ...minimal, ...env }, { readText })
  const both = read({ POSTHOUSE_ADMIN_TOKENS: 'list-token-of-24-letters', POSTHOUSE_ADMIN_TOKENS_FILE: '/tokens' })
  assert.ok('config' in both)
  assert.deepEqual(both.config.admin.tokens, ['list-token-of-24-letters', 'file-token-of-24-letters'])
  assert.deepEqual(accepted({}).config.admin, { tokens: [], recentAttempts: 100_000 })

  oneProblem({ POSTHOUSE_ADMIN_TOKENS: 'list-token-of-24-letters,shorty' }, /POSTHOUSE_ADMIN_TOKENS is not usable: give a list .* 16 to 256/)
  for (const [path, pattern] of [['/short', /line 2 of \/short .* 16 to 256/], ['/empty', /no token in it/], ['/none', /could not be read \(ENOENT\)/]] as const) {
    const result = read({ POSTHOUSE_ADMIN_TOKENS_FILE: path })
    assert.ok('problems' in result)
    assert.equal(result.problems.length, 1)
    assert.match(result.problems[0] ?? '', pattern)
    assert.doesNotMatch(result.problems[0] ?? '', /shorty/)
  }
})
