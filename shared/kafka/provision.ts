import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type Admin } from 'kafkajs'
import { isLess, leastValueKeys } from './topic-check.ts'
import { readTopicStates, type TopicState } from './topic-state.ts'
import type { TopicSpec } from './topics.ts'

const { ConfigResourceTypes } = kafkajs

/** One thing in which the cluster is not as the catalogue says. More partitions than wished is not one, nor is a longer retention. */
export type TopicDifference =
  | { readonly kind: 'missing'; readonly topic: TopicSpec }
  | { readonly kind: 'partitions'; readonly name: string; readonly has: number; readonly wants: number }
  | { readonly kind: 'config'; readonly name: string; readonly key: string; readonly has: string | null; readonly wants: string }

/** What `applyTopics` would do, in the order of the catalogue. Empty: nothing has drifted. */
export async function planTopics(admin: Admin, catalogue: readonly TopicSpec[]): Promise<readonly TopicDifference[]> {
  const states = await readTopicStates(admin, catalogue.map(({ name }) => name))
  return catalogue.flatMap((spec) => differencesOf(spec, states.get(spec.name)))
}

/**
 * Creates, grows and configures topics. Deletes nothing and keeps every other value set on a topic; may be repeated. Resolves once a broker shows it.
 * @throws when Kafka refuses a part (what was done before it stays)
 */
export async function applyTopics(admin: Admin, plan: readonly TopicDifference[]): Promise<void> {
  const missing = plan.flatMap((difference) => (difference.kind === 'missing' ? [difference.topic] : []))
  if (missing.length > 0) {
    await admin.createTopics({
      waitForLeaders: true,
      topics: missing.map(({ name, partitions, replication, config }) => ({
        topic: name, numPartitions: partitions, replicationFactor: replication,
        configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
      })),
    })
  }
  const growing = plan.flatMap((difference) => (difference.kind === 'partitions' ? [{ topic: difference.name, count: difference.wants }] : []))
  if (growing.length > 0) await admin.createPartitions({ topicPartitions: growing })
  await alterConfigs(admin, plan.filter((difference) => difference.kind === 'config'))
  await shown(admin, plan)
}

/** A broker learns what the controller has done a moment later: whoever looks next must see it. */
const shownDeadlineMs = 10_000

async function shown(admin: Admin, plan: readonly TopicDifference[]): Promise<void> {
  const names = [...new Set(plan.map(nameOf))]
  const deadlineAt = performance.now() + shownDeadlineMs
  while (performance.now() < deadlineAt) {
    const states = await readTopicStates(admin, names)
    if (plan.every((difference) => isShown(difference, states.get(nameOf(difference))))) return
    await sleep(50)
  }
}

const nameOf = (difference: TopicDifference): string => (difference.kind === 'missing' ? difference.topic.name : difference.name)

function isShown(difference: TopicDifference, state: TopicState | undefined): boolean {
  if (!state) return false
  if (difference.kind === 'missing') return differencesOf(difference.topic, state).length === 0
  if (difference.kind === 'partitions') return state.partitions >= difference.wants
  return isSameValue(difference.key, state.config[difference.key], difference.wants)
}

function differencesOf(spec: TopicSpec, state: TopicState | undefined): readonly TopicDifference[] {
  if (!state) return [{ kind: 'missing', topic: spec }]
  const { name } = spec
  const isToGrow = spec.growth === 'grows' && state.partitions < spec.partitions
  const drifted = Object.entries(spec.config).filter(([key, wants]) => !isSameValue(key, state.config[key], wants))
  return [
    ...(isToGrow ? [{ kind: 'partitions', name, has: state.partitions, wants: spec.partitions } as const] : []),
    ...drifted.map(([key, wants]) => ({ kind: 'config', name, key, has: state.config[key] ?? null, wants } as const)),
  ]
}

/** Lists may be in any order (`delete,compact`), numbers in any form (`0.10`). */
function isSameValue(key: string, has: string | undefined, wants: string): boolean {
  if (has === undefined) return false
  if (has === wants) return true
  // To shorten a retention that somebody has chosen would delete what they keep.
  if (leastValueKeys.has(key)) return !isLess(has, wants)
  if (key === 'cleanup.policy') return sortedList(has) === sortedList(wants)
  return wants.trim() !== '' && Number(has) === Number(wants)
}

const sortedList = (text: string): string => text.split(',').map((part) => part.trim()).sort().join(',')

/** kafkajs can only replace the whole configuration of a topic, so what else is set on it is read just before and sent along. */
async function alterConfigs(admin: Admin, drifted: readonly Extract<TopicDifference, { kind: 'config' }>[]): Promise<void> {
  if (drifted.length === 0) return
  const byTopic = Map.groupBy(drifted, ({ name }) => name)
  const states = await readTopicStates(admin, [...byTopic.keys()])
  await admin.alterConfigs({
    validateOnly: false,
    resources: [...byTopic].map(([name, differences]) => ({
      type: ConfigResourceTypes.TOPIC, name,
      configEntries: Object.entries({
        ...states.get(name)?.ownConfig, ...Object.fromEntries(differences.map(({ key, wants }) => [key, wants])),
      }).map(([name, value]) => ({ name, value })),
    })),
  })
}
