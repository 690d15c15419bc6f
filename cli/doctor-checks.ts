import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../shared/config/config.ts'
import { formatDuration } from '../shared/domain/duration.ts'
import { readGroupState, type GroupState } from '../shared/kafka/group-state.ts'
import { planTopics } from '../shared/kafka/provision.ts'
import { checkTopics } from '../shared/kafka/topic-check.ts'
import { listRetryTopics } from '../shared/kafka/topics.ts'
import type { Context } from './context.ts'
import { fail, ok, warn, type Finding } from './doctor-finding.ts'
import { eventsTopicHint, requireTopics, type KafkaSession } from './kafka-session.ts'
import { effectiveEnvironment } from './settings.ts'
import { openSubscriptions } from './subscription-session.ts'

const provisionAdvice = 'run "posthouse topics provision --yes"'

export function checkConfiguration(): readonly Finding[] {
  const result = readConfig(effectiveEnvironment().env)
  const warnings = 'warnings' in result ? result.warnings : []
  if (warnings.length === 0) return [ok('configuration', 'is valid')]
  return warnings.map((text) => {
    const colon = text.indexOf(': ')
    const advice = 'see "posthouse config print"'
    return colon < 0 ? warn('configuration', text, advice) : warn('configuration', text.slice(0, colon), text.slice(colon + 2))
  })
}

export async function checkBrokers({ admin, config }: KafkaSession): Promise<readonly Finding[]> {
  const { brokers } = await admin.describeCluster()
  return [ok(
    'kafka',
    `${brokers.length} ${brokers.length === 1 ? 'broker answers' : 'brokers answer'} at ${config.kafka.brokers.join(', ')}`,
  )]
}

/** FAIL: what would lose deliveries or let them wait wrongly. WARN: any other difference from how topics should be. */
export async function checkAllTopics({ admin, catalogue, config }: KafkaSession): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const missingEvents = (await checkTopics(admin, catalogue, config.events.topics)).map(({ topic }) => topic)
  const [plan, problems] = await Promise.all([
    planTopics(admin, catalogue), checkTopics(admin, catalogue, catalogue.map(({ name }) => name)),
  ])
  const missing = plan.flatMap((difference) => (difference.kind === 'missing' ? [difference.topic.name] : []))
  if (missing.length > 0) {
    findings.push(fail(
      'topics', `${missing.length} of ${catalogue.length} do not exist (${missing.join(', ')})`, provisionAdvice,
    ))
  }
  const wrong = problems.filter(({ topic }) => !missing.includes(topic))
  findings.push(...wrong.map(({ problem }) => fail('topics', problem.replace(/: run "posthouse .*$/, ''), provisionAdvice)))
  const drifted = new Set(plan.flatMap((difference) => (difference.kind === 'missing' ? [] : [difference.name]))
    .filter((name) => !wrong.some(({ topic }) => topic === name)))
  if (drifted.size > 0) {
    findings.push(warn(
      'topics', `${[...drifted].join(', ')} differ from how they should be`, 'see how with "posthouse topics check"',
    ))
  }
  if (findings.length === 0) findings.push(ok('topics', `all ${catalogue.length} are as they should be`))
  findings.push(missingEvents.length > 0
    ? fail('events', `${missingEvents.join(', ')} ${missingEvents.length === 1 ? 'does' : 'do'} not exist`, eventsTopicHint)
    : ok('events', `are read from ${config.events.topics.join(', ')}`))
  return findings
}

/** Receivers refuse signatures that are more than 5 minutes off. */
const clockFailMs = 4 * 60_000
const clockWarnMs = 5_000

/**
 * A record's append time is all that a client learns of the brokers' clock, so one is written: the deletion of an endpoint that never
 * was, which no reader minds.
 */
export async function checkClock(context: Context, kafka: KafkaSession): Promise<readonly Finding[]> {
  await requireTopics(kafka, [kafka.names.endpointHealth])
  const { producer, brokerTime } = await kafka.producer()
  await context.wait(
    'reading the brokers\' clock',
    producer.send({ topic: kafka.names.endpointHealth, key: 'posthouse-doctor', value: null }),
  )
  const skewMs = brokerTime.skewMs()
  if (brokerTime.uncertaintyMs() === null) {
    return [warn(
      'clock', 'the brokers\' clock could not be read: endpoint-health has no LogAppendTime', provisionAdvice,
    )]
  }
  const size = Math.abs(skewMs)
  const detail = `this machine's clock is ${formatDuration(Math.round(size))} ${skewMs > 0 ? 'behind' : 'ahead of'} the brokers'`
  if (size >= clockFailMs) return [fail('clock', detail, 'set it right (NTP): receivers refuse signatures that are 5 minutes off')]
  return [size >= clockWarnMs ? warn('clock', detail, 'set it right (NTP)') : ok('clock', detail)]
}

type Group = { readonly service: string; readonly groupId: string; readonly topics: readonly string[]; readonly waits: boolean }

export async function checkGroups(context: Context, kafka: KafkaSession): Promise<readonly Finding[]> {
  const { admin, config, names } = kafka
  const { groupPrefix } = config
  const present = new Set(await admin.listTopics())
  const retryTopics = await listRetryTopics(admin, config.topics.prefix)
  const groups: readonly Group[] = [
    { service: 'router', groupId: `${groupPrefix}.router`, topics: config.events.topics, waits: false },
    { service: 'delivery', groupId: `${groupPrefix}.delivery`, topics: [names.deliveries], waits: false },
    ...retryTopics.map(({ name, suffix }) =>
      ({ service: 'retry-tier', groupId: `${groupPrefix}.retry.${suffix}`, topics: [name], waits: true })),
  ]
  const existing = groups.filter(({ topics }) => topics.every((topic) => present.has(topic)))
  const read = () => Promise.all(existing.map(({ groupId, topics }) => readGroupState(admin, groupId, topics)))
  const before = await context.wait('looking at consumer groups', read())
  const isBehind = before.some(({ members, lag }, index) => members > 0 && lag > 0 && !existing[index]!.waits)
  if (isBehind) await context.wait('watching consumer groups', sleep(progressMs))
  const after = isBehind ? await context.wait('looking at consumer groups', read()) : before
  return summarise(existing.map((group, index) => findingOf(group, before[index]!, after[index]!)))
}

/** In this time a service that has anything to do commits, ms. */
const progressMs = 1_000

function findingOf({ service, groupId, waits }: Group, before: GroupState, after: GroupState): Finding {
  const { members, lag } = after
  if (members === 0) {
    return fail(
      service, `nobody is in group ${groupId}${lag > 0 && after.uncommitted === 0 ? `, and ${records(lag)} there` : ''}`,
      `start "posthouse run ${service}"`,
    )
  }
  const running = `${members} ${members === 1 ? 'process' : 'processes'}`
  if (waits) return ok(service, `${groupId}: ${running}, ${records(lag)} there`)
  if (lag === 0) return ok(service, `${running}, caught up`)
  if (after.progress > before.progress) return ok(service, `${running}, ${records(lag)} behind and working`)
  return warn(
    service, `${running}, ${records(lag)} behind, and nothing was done within a second`,
    'look again; if it stays so, see the log of the service',
  )
}

const records = (count: number): string => `${count} ${count === 1 ? 'record' : 'records'}`

/** One line where all tiers are well. */
function summarise(findings: readonly Finding[]): readonly Finding[] {
  const tiers = findings.filter(({ check }) => check === 'retry-tier')
  if (tiers.length === 0 || tiers.some(({ verdict }) => verdict !== tiers[0]!.verdict)) return findings
  const others = findings.filter(({ check }) => check !== 'retry-tier')
  if (tiers[0]!.verdict === 'OK') return [...others, ok('retry-tier', `all ${tiers.length} retry topics are served`)]
  return [...others, fail('retry-tier', `none of the ${tiers.length} retry topics is served`, 'start "posthouse run retry-tier"')]
}

export async function checkSubscriptions(context: Context, kafka: KafkaSession): Promise<readonly Finding[]> {
  const table = await openSubscriptions(context, kafka)
  const all = table.list()
  const findings: Finding[] = []
  if (table.newerCount() > 0) {
    findings.push(fail(
      'subscriptions', `${table.newerCount()} were written by a newer posthouse, and deliveries wait for a reader of them`,
      'upgrade posthouse',
    ))
  }
  if (table.ignoredCount() > 0) {
    findings.push(warn(
      'subscriptions', `${table.ignoredCount()} records of ${kafka.names.subscriptions} cannot be read and are ignored`,
      'see with --verbose which',
    ))
  }
  const plain = all.filter(({ url }) => url.startsWith('http:'))
  if (plain.length > 0 && !kafka.config.safety.allowsHttp) {
    findings.push(warn(
      'subscriptions', `${plain.length} have http: URLs, which POSTHOUSE_ALLOW_HTTP does not allow here`,
      'give them https: URLs, or allow http',
    ))
  }
  if (all.length === 0) {
    findings.push(warn(
      'subscriptions', 'there are none, so nothing is sent', 'make one with "posthouse subscriptions create"',
    ))
  }
  const count = (state: string): number => all.filter((one) => one.state === state).length
  if (findings.length > 0) return findings
  return [ok('subscriptions', `${count('active')} active, ${count('paused')} paused, ${count('disabled')} disabled`)]
}
