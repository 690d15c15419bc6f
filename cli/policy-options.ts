import { InvalidArgumentError, Option, type Command } from 'commander'
import { failureClasses } from '../shared/domain/classify.ts'
import { jitterKinds, noPolicy, type JitterKind, type SubscriptionPolicy } from '../shared/domain/policy.ts'
import { durationMs, wholeNumber } from './command.ts'

/** What `addPolicyOptions` leaves in a command's options. */
export type PolicyOptions = {
  readonly strategy?: 'standard' | 'exponential'
  readonly schedule?: readonly number[]
  readonly base?: number
  readonly max?: number
  readonly maxAttempts?: number
  readonly adaptive?: boolean
  readonly jitter?: JitterKind
  readonly timeout?: number
  /** false: none. */
  readonly classify?: SubscriptionPolicy['statusClasses'] | false
  readonly defaultPolicy?: boolean
}

/** What a command that writes a subscription takes. */
export function addPolicyOptions(command: Command): Command {
  return addPolicyFields(command)
    .option('--no-classify', 'every status means what the published table says')
    .option('--default-policy', 'forget what was set before, and use the installation\'s policy')
}

export function addPolicyFields(command: Command): Command {
  return command
    .addOption(new Option('--strategy <strategy>', 'how waits between attempts are chosen').choices(['standard', 'exponential']))
    .option(
      '--schedule <waits>', 'waits between attempts, such as 1m,5m,30m (standard)',
      (text) => text.split(',').map((part) => durationMs(part.trim())),
    )
    .option('--base <duration>', 'first wait (exponential)', durationMs)
    .option('--max <duration>', 'longest wait (exponential)', durationMs)
    .option('--max-attempts <n>', 'attempts before a delivery is dead', wholeNumber(1, 100))
    .option('--adaptive', 'halve or double waits by the endpoint\'s health')
    .option('--no-adaptive', 'do not')
    .addOption(new Option('--jitter <kind>', 'how waits are spread').choices([...jitterKinds]))
    .option('--timeout <duration>', 'one deadline over each attempt', durationMs)
    .option('--classify <status=class>', 'what a status means here: retriable, ambiguous or permanent; may be repeated; in place of the present ones', statusClass)
}

function statusClass(text: string, earlier: SubscriptionPolicy['statusClasses'] | boolean | undefined): SubscriptionPolicy['statusClasses'] {
  const [status = '', name = ''] = text.split('=', 2)
  const failureClass = failureClasses.find((one) => one === name)
  if (!/^\d{3}$/.test(status) || failureClass === undefined) {
    throw new InvalidArgumentError('Give a status and a class, such as 404=permanent.')
  }
  return [...(Array.isArray(earlier) ? earlier as SubscriptionPolicy['statusClasses'] : []), { status: Number(status), failureClass }]
}

/** The policy that `present` becomes; undefined when the options say nothing about it. */
export function policyFrom(options: PolicyOptions, present: SubscriptionPolicy): SubscriptionPolicy | undefined {
  const { strategy, schedule, base, max, maxAttempts, adaptive, jitter, timeout, classify, defaultPolicy = false } = options
  const given = withoutUndefined({
    strategy, scheduleMs: schedule, baseMs: base, maxMs: max, maxAttempts, adaptive, jitter, timeoutMs: timeout,
    statusClasses: classify === false ? [] : classify,
  })
  if (!defaultPolicy && Object.keys(given).length === 0) return undefined
  return { ...(defaultPolicy ? noPolicy : present), ...given }
}

/** What is given, without what is not: a spread of `undefined` would take away what it is spread over. */
export function withoutUndefined<Fields extends object>(fields: Fields): Given<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<Fields>
}

type Given<Fields> = { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> }
