import type { Admin } from 'kafkajs'
import { readTopicStates, type TopicState } from './topic-state.ts'
import type { TopicSpec } from './topics.ts'

/** Why a service must not start, for the person who runs it. */
export type TopicProblem = { readonly topic: string; readonly problem: string }

/**
 * Checks at start, of the topics a service needs, what would lose deliveries or wait wrongly; other drift is left to `planTopics`.
 * `needed` are full names; those not in the catalogue (a user's own) only have to exist.
 */
export async function checkTopics(admin: Admin, catalogue: readonly TopicSpec[], needed: readonly string[]): Promise<readonly TopicProblem[]> {
  const states = await readTopicStates(admin, needed)
  const specs = new Map(catalogue.map((spec) => [spec.name, spec]))
  return needed.flatMap((name) => problemsOf(specs.get(name), states.get(name)).map((problem) => ({ topic: name, problem: `topic ${name} ${problem}` })))
}

/** Of these more is as good: whoever keeps records for longer has a reason. */
export const leastValueKeys: ReadonlySet<string> = new Set(['retention.ms', 'retention.bytes', 'delete.retention.ms', 'max.message.bytes'])

const advice = 'run "posthouse topics provision --yes"'

function problemsOf(spec: TopicSpec | undefined, state: TopicState | undefined): readonly string[] {
  if (!state) return [spec ? `does not exist: ${advice}` : 'does not exist: create it, or correct its name in the configuration']
  if (!spec) return []
  const problems: string[] = []
  const wanted = (key: string): string => spec.config[key] ?? ''
  const timestamps = state.config['message.timestamp.type']
  if (timestamps !== wanted('message.timestamp.type')) {
    problems.push(`has message.timestamp.type=${timestamps}, but waits are measured by the broker's clock and need LogAppendTime: ${advice}`)
  }
  const policy = new Set(state.config['cleanup.policy']?.split(',').map((part) => part.trim()))
  const wantedPolicy = wanted('cleanup.policy').split(',')
  if (policy.size !== wantedPolicy.length || !wantedPolicy.every((part) => policy.has(part))) {
    problems.push(`has cleanup.policy=${[...policy].join(',')} and needs ${wantedPolicy.join(',')}: ${advice}`)
  }
  for (const key of leastValueKeys) {
    if (spec.config[key] !== undefined && isLess(state.config[key], wanted(key))) {
      problems.push(`has ${key}=${state.config[key]} and needs at least ${wanted(key)}${wanted(key) === '-1' ? ' (no limit)' : ''}: ${advice}`)
    }
  }
  if (spec.growth === 'single' && state.partitions !== 1) {
    problems.push(`has ${state.partitions} partitions and must have one, as its offsets are versions: make it anew with one partition`)
  }
  return problems
}

/** -1 is no limit, so more than anything. */
export function isLess(has: string | undefined, wants: string): boolean {
  const limit = (text: string | undefined): number => (text === '-1' ? Infinity : Number(text ?? Number.NaN))
  return !(limit(has) >= limit(wants))
}
