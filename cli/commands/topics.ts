import { Option, type Command } from 'commander'
import type { Config } from '../../shared/config/config.ts'
import { planTopics, applyTopics, type TopicDifference } from '../../shared/kafka/provision.ts'
import { checkTopics } from '../../shared/kafka/topic-check.ts'
import { formatAsCommands, formatAsStrimzi } from '../../shared/kafka/topic-format.ts'
import type { TopicSpec } from '../../shared/kafka/topics.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, addNoun } from '../command.ts'
import { isConfirmed, type ConfirmOptions } from '../confirm.ts'
import type { Context } from '../context.ts'
import { catalogueOf, withKafka } from '../kafka-session.ts'
import type { Output } from '../output.ts'
import { effectiveEnvironment, readSettings } from '../settings.ts'

type ProvisionOptions = ConfirmOptions & {
  readonly withEvents?: boolean
  readonly format?: 'kafka-topics' | 'strimzi'
  readonly cluster: string
}

export function addTopicsCommands(program: Command): void {
  const topics = addNoun(program, 'topics', 'the topics posthouse keeps in Kafka')
  addCommand(topics, 'provision', 'create, grow and configure the topics as they should be; deletes nothing')
    .option('--with-events', 'also create the topics events are read from (POSTHOUSE_EVENTS_TOPICS) where they are missing')
    .option('--yes', 'do it; without it the changes are only shown')
    .option('--dry-run', 'show the changes and end with 0')
    .addOption(new Option('--format <format>', 'print it for another tool instead of doing it').choices(['kafka-topics', 'strimzi']))
    .option('--cluster <name>', 'the cluster\'s name in the resources for Strimzi', 'kafka')
    .action(act(provision))
  addCommand(topics, 'check', 'compare the topics with how they should be; exit code 5 when they differ')
    .action(act(check))
}

async function provision(context: Context, options: ProvisionOptions): Promise<void> {
  // Resources describe the whole wish, so this asks no cluster.
  if (options.format === 'strimzi') {
    const { config } = readSettings(effectiveEnvironment(), { requireKafka: false })
    return context.output.text(formatAsStrimzi(wantedTopics(config, options), options.cluster))
  }
  await withKafka(context, async ({ admin, config }) => {
    const plan = await context.wait('comparing the topics', planTopics(admin, wantedTopics(config, options)))
    if (options.format === 'kafka-topics') return context.output.text(formatAsCommands(plan, config.kafka.brokers.join(',')))
    printPlan(context.output, plan)
    if (plan.length === 0) return context.output.note('The topics are as they should be.')
    if (!isConfirmed(context, options)) return
    await context.wait('changing topics', applyTopics(admin, plan))
    context.output.note('Done.')
  })
}

/** The events' own topics are the user's: they are only made where missing, with whatever the brokers' defaults are. */
function wantedTopics(config: Config, { withEvents = false }: ProvisionOptions): readonly TopicSpec[] {
  const catalogue = catalogueOf(config)
  if (!withEvents) return catalogue
  const ours = new Set(catalogue.map(({ name }) => name))
  const { partitions, replicationFactor } = config.topics
  return [...catalogue, ...config.events.topics.filter((name) => !ours.has(name))
    .map((name) => ({ name, partitions, growth: 'fixed', replication: replicationFactor ?? -1, config: {} }) as const)]
}

async function check(context: Context): Promise<void> {
  await withKafka(context, async ({ admin, catalogue }) => {
    const [plan, problems] = await context.wait('comparing the topics', Promise.all([
      planTopics(admin, catalogue), checkTopics(admin, catalogue, catalogue.map(({ name }) => name)),
    ]))
    const rows = [...planRows(plan), ...unplannedRows(plan, problems)]
    printRows(context.output, rows)
    if (rows.length === 0) return context.output.note('The topics are as they should be.')
    throw new CliError('drift', `${rows.length} ${rows.length === 1 ? 'thing differs' : 'things differ'} from how the topics should be`,
      'see them with "posthouse topics provision", and mend them with --yes')
  })
}

type PlanRow = {
  readonly topic: string
  readonly change: 'create' | 'grow' | 'configure' | 'remake'
  readonly detail: string
  readonly has?: unknown
  readonly wants?: unknown
}

/** What cannot be mended by `provision`, such as too many partitions of a topic that must have one. */
function unplannedRows(
  plan: readonly TopicDifference[], problems: readonly { readonly topic: string; readonly problem: string }[],
): readonly PlanRow[] {
  const planned = new Set(plan.map((difference) => (difference.kind === 'missing' ? difference.topic.name : difference.name)))
  return problems.filter(({ topic }) => !planned.has(topic)).map(({ topic, problem }) => ({ topic, change: 'remake', detail: problem }))
}

const planRows = (plan: readonly TopicDifference[]): readonly PlanRow[] => plan.map(planRow)

function planRow(difference: TopicDifference): PlanRow {
  if (difference.kind === 'missing') {
    const { name, partitions, replication, config } = difference.topic
    const settings = ['cleanup.policy', 'retention.ms'].filter((key) => config[key] !== undefined).map((key) => `${key}=${config[key]}`)
    const detail = [
      partitions === 1 ? '1 partition' : `${partitions} partitions`, ...(replication > 0 ? [`${replication} replicas`] : []),
      ...settings,
    ].join(', ')
    return { topic: name, change: 'create', detail, wants: { partitions, replication, config } }
  }
  const { name, has, wants } = difference
  if (difference.kind === 'partitions') return { topic: name, change: 'grow', detail: `${has} to ${wants} partitions`, has, wants }
  const { key } = difference
  const detail = `${key}: ${has ?? 'unset'} to ${wants}`
  return { topic: name, change: 'configure', detail, has: { [key]: has }, wants: { [key]: wants } }
}

const printPlan = (output: Output, plan: readonly TopicDifference[]): void => printRows(output, planRows(plan))

function printRows(output: Output, rows: readonly PlanRow[]): void {
  output.rows(rows, [
    { title: 'TOPIC', text: ({ topic }) => topic },
    { title: 'CHANGE', text: ({ change }) => change },
    { title: 'DETAIL', text: ({ detail }) => detail },
  ])
}
