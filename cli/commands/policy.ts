import { InvalidArgumentError, type Command } from 'commander'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { policyNotes, validatePolicy } from '../../shared/domain/policy-check.ts'
import { noPolicy, resolvePolicy, type Policy, type SubscriptionPolicy } from '../../shared/domain/policy.ts'
import { measure, requestsAfterOutage } from '../../shared/simulation/measure.ts'
import { simulatedJitters, type SimulatedFailure, type SimulatedJitter, type SimulationModel } from '../../shared/simulation/model.ts'
import { simulate as simulateRun } from '../../shared/simulation/simulate.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, addNoun, durationMs, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { readInput } from '../input.ts'
import { parsePolicy } from '../policy-file.ts'
import { addPolicyFields, policyFrom, type PolicyOptions } from '../policy-options.ts'
import { announcement, effectiveEnvironment, readSettings } from '../settings.ts'
import { printSimulation, type SimulatedRun } from '../simulation-view.ts'

type SimulateOptions = PolicyOptions & {
  readonly outage: number
  readonly availability: number
  readonly deliveries: number
  readonly over: number
  readonly failure: SimulatedFailure
  readonly latency: number
  readonly seed: number
  readonly policy?: string
}

const help = `
Runs the code that decides in delivery, in virtual time, for one endpoint: once with each jitter, and once without. It needs no Kafka. What
the policy leaves out is as the settings in the environment have it; so are the tiers, the age at which deliveries are given up and the
bounds of requests in flight.

  posthouse policy simulate --outage 6h
  posthouse policy simulate --availability 0.5
  posthouse policy simulate --outage 6h --over 6h --failure 503 --strategy exponential --max-attempts 12
  posthouse policy simulate --outage 2d --policy '{"schedule": ["1m", "1h", "12h", "24h"]}'

All deliveries are routed within --over, from the beginning of the outage: a minute, for a batch; as long as the outage, for steady events.
Not in it: parking, other endpoints, restarts, and what Kafka takes.`

export function addPolicyCommands(program: Command): void {
  const policy = addNoun(program, 'policy', 'how deliveries are tried again')
  const simulate = addCommand(policy, 'simulate', 'show what a policy does to an endpoint that is away or fails: delivered share, times, attempts, requests a second')
    .option('--outage <duration>', 'how long every attempt fails', durationMs, 0)
    .option('--availability <share>', 'probability that an attempt succeeds, otherwise', share, 1)
    .option('--deliveries <n>', 'deliveries of the endpoint', wholeNumber(1, 100_000), 10_000)
    .option('--over <duration>', 'they are routed evenly over this span', durationMs, 60_000)
    .option('--failure <status|error>', 'what a failed attempt returns: a status, connect_refused or timeout', failure, 'connect_refused')
    .option('--latency <duration>', 'how long an answer takes', durationMs, 100)
    .option('--seed <n>', 'another seed, other draws; the same, the same result', wholeNumber(0, Number.MAX_SAFE_INTEGER), 1)
    .option('--policy <file|json>', 'a policy as files of subscriptions have it, or the file it is in; the options below change it')
  addPolicyFields(simulate).addHelpText('after', help).action(act(runSimulation))
}

function share(text: string): number {
  const value = Number(text)
  if (!/^\d*\.?\d+$/.test(text) || value > 1) throw new InvalidArgumentError('Give a number from 0 to 1, such as 0.5.')
  return value
}

function failure(text: string): SimulatedFailure {
  if (text === 'connect_refused' || text === 'timeout') return text
  const status = Number(text)
  if (!/^[1-5]\d\d$/.test(text) || (status >= 200 && status <= 299)) {
    throw new InvalidArgumentError('Give a status that is no success, connect_refused or timeout.')
  }
  return status
}

async function runSimulation(context: Context, options: SimulateOptions): Promise<void> {
  const effective = effectiveEnvironment()
  if (effective.local) context.output.warn(announcement(effective.local))
  const { config } = readSettings(effective, { requireKafka: false })
  const own = await ownPolicy(context, options)
  const problems = validatePolicy(own, config.policy)
  if (problems.length > 0) throw new CliError('usage', ['the policy is not sound', ...problems.map((one) => `  ${one}`)].join('\n'))
  for (const note of policyNotes(own, config.policy, config.deliveryExpiryMs)) context.output.warn(note)

  const policy = resolvePolicy(own, config.policy)
  const { outage, availability, deliveries, over, latency, seed } = options
  const model: SimulationModel = {
    deliveries, overMs: over, outageMs: outage, availability, failure: options.failure, latencyMs: latency, seed,
    expiryMs: config.deliveryExpiryMs, tiersMs: config.tiersMs,
    endpointCap: { start: config.delivery.endpointCapStart, max: config.delivery.endpointCapMax },
  }
  const runs: SimulatedRun[] = []
  for (const jitter of simulatedJitters) runs.push(await context.wait(`simulating ${jitter} jitter`, runInTurns(context, model, policy, jitter)))
  printSimulation(context.output, model, policy, runs)
}

async function ownPolicy(context: Context, options: SimulateOptions): Promise<SubscriptionPolicy> {
  const { policy: given } = options
  const fromFile = given === undefined ? noPolicy
    : given.trimStart().startsWith('{') ? parsePolicy(given, '--policy')
    : parsePolicy((await readInput(given, context.signal)).toString(), given)
  return policyFrom(options, fromFile) ?? fromFile
}

/** Lets signals and the progress line have their turn. */
async function runInTurns({ signal }: Context, model: SimulationModel, policy: Policy, jitter: SimulatedJitter): Promise<SimulatedRun> {
  const run = simulateRun(model, policy, jitter)
  for (;;) {
    const { done, value } = run.next()
    if (done) return { measured: measure(model, value), requests: requestsAfterOutage(model, value) }
    await nextTurn()
    signal.throwIfAborted()
  }
}
