import { deadState } from '../domain/decide.ts'
import { formatDuration } from '../domain/duration.ts'
import type { RetryContract } from './contract.ts'
import { classificationTables } from './markdown-classification.ts'
import { bullets, table } from './markdown-parts.ts'
import { inPercent, inWords } from './words.ts'

/** The contract for people. */
export function contractToMarkdown(contract: RetryContract): string {
  const sections: readonly (readonly [string, readonly string[]])[] = [
    ['Context', contextOf(contract)],
    ['Failure classification', classificationTables(contract)],
    ['States', statesOf(contract)],
    ['Backoff', backoffOf(contract)],
    ['At least once', guaranteeOf(contract)],
    ['Idempotency', idempotencyOf(contract)],
    ['Dead letters', deadLettersOf(contract)],
    ['Alerts', alertsOf(contract)],
    ['Hand-offs', handOffsOf(contract)],
  ]
  return [titleOf(contract), ...sections.map(([title, parts]) => [`## ${title}`, ...parts].join('\n\n'))].join('\n\n') + '\n'
}

function titleOf({ subject, posthouse }: RetryContract): string {
  const whose = subject.kind === 'defaults'
    ? 'For every subscription that sets no policy of its own.'
    : `For subscription ${subject.id}${subject.tenant === null ? '' : ` of tenant ${subject.tenant}`} at ${subject.host} (${subject.endpointKey}), ${subject.state}, ` +
      `event types ${subject.eventTypes.join(' ')}.`
  return `# Retry contract\n\n${whose} Made by posthouse ${posthouse} from the code that decides.`
}

function contextOf({ context }: RetryContract): readonly string[] {
  return [bullets([`Kind: ${context.kind}.`, `Deadline: ${context.deadline.meaning}.`, ...context.blastRadius.map((one) => `Blast radius: ${one}.`)])]
}

function statesOf({ states }: RetryContract): readonly string[] {
  const exits = states.flatMap(({ state, exits }) => exits.map((exit) => ({ ...exit, from: state })))
  // What holds before each attempt is the same from two states.
  const together = [...Map.groupBy(exits, ({ on, to, when }) => JSON.stringify([on, to, when])).values()]
  return [
    table(['State', 'Meaning', 'On entry'], states.map(({ state, meaning, entryActions, isTerminal }) =>
      [`\`${state}\`${isTerminal ? ' (terminal)' : ''}`, meaning, entryActions.join('; ')])),
    table(['From', 'When', 'To'], together.map((same) => [same.map(({ from }) => `\`${from}\``).join(', '), same[0]!.when, `\`${same[0]!.to}\``])),
  ]
}

function backoffOf({ backoff, attempts, totalTimeBudget }: RetryContract): readonly string[] {
  const { adaptive, jitter, scheduleMs, baseMs, capMs } = backoff
  const factors = adaptive.factors.map(({ factor, healthAbove }) => `${factor} ${healthAbove === null ? 'else' : `above ${healthAbove}`}`).join(', ')
  const range = (times: { readonly earliestMs: number; readonly nominalMs: number; readonly latestMs: number }): string[] =>
    [times.earliestMs, times.nominalMs, times.latestMs].map(inWords)
  return [
    bullets([
      `Strategy \`${backoff.strategy}\`: wait after attempt n = ${backoff.formula}.`,
      ...(scheduleMs === null ? [] : [`Schedule: ${scheduleMs.map(formatDuration).join(' ') || 'no waits'}.`]),
      ...(baseMs === null || capMs === null ? [] : [`Base ${inWords(baseMs)}, cap ${inWords(capMs)}.`]),
      `Jitter \`${jitter.kind}\`: ${jitter.formula}, drawn from ${jitter.drawnFrom}.`,
      `Adaptive factor ${adaptive.isOn ? `in force: ${factors}; health = ${adaptive.health}` : 'not in force'}.`,
      `At most ${backoff.maxAttempts} attempts.`,
      ...backoff.retryAfter.rules.map((rule) => `Retry-After: ${rule}.`),
      `Waits are spent in tiers of ${backoff.tiersMs.map(formatDuration).join(' ')}: never early, at most ${inWords(backoff.latestByMs)} late.`,
    ]),
    table(
      ['Attempt', 'Wait, shortest', 'nominal', 'longest', 'Begins, earliest', 'nominal', 'latest'],
      attempts.map((one) => [String(one.attempt), ...(one.waitBefore === null ? ['', '', ''] : range(one.waitBefore)), ...range(one)]),
    ),
    table(
      ['Total time budget', 'Best', 'Nominal', 'Worst'],
      ([['in force', totalTimeBudget], ['with the adaptive factor', totalTimeBudget.withAdaptive], ['without it', totalTimeBudget.withoutAdaptive]] as const)
        .map(([name, { bestMs, nominalMs, worstMs }]) => [name, ...[bestMs, nominalMs, worstMs].map(inWords)]),
    ),
    'From the beginning of the first attempt to the end of the last, where all fail. Not in it:',
    bullets(totalTimeBudget.notIncluded),
  ]
}

function guaranteeOf({ guarantee }: RetryContract): readonly string[] {
  const counts = [...new Set(guarantee.deliveredShare.map(({ attempts }) => attempts))]
  const availabilities = [...new Set(guarantee.deliveredShare.map(({ availability }) => availability))]
  const shareOf = (availability: number, count: number): string =>
    inPercent(guarantee.deliveredShare.find((one) => one.availability === availability && one.attempts === count)?.share ?? 0)
  return [
    bullets(guarantee.argument),
    `P(delivered) = ${guarantee.formula}:`,
    table(['Availability', ...counts.map((count) => `${count} attempt${count === 1 ? '' : 's'}`)],
      availabilities.map((availability) => [String(availability), ...counts.map((count) => shareOf(availability, count))])),
  ]
}

function idempotencyOf({ idempotency: { key, receiver } }: RetryContract): readonly string[] {
  return [
    bullets([
      `The key is ${key.form}: a hash of ${key.madeOf.join(', ')}.`,
      `It is in ${key.headers.map((header) => `\`${header}\``).join(' and ')}, the same on ${key.sameOn.join(', ')}.`,
      `Without replays a repeat may come up to ${inWords(receiver.repeatsWithinMs)} after the first; remember keys for more than ${inWords(receiver.dedupeWindowMs)} where dead letters are replayed.`,
      ...receiver.why,
    ]),
    table(['The receiver sees', 'It answers', 'posthouse then'], receiver.rules.map(({ when, answer, leadsTo }) => [when, answer, consequenceInWords[leadsTo]])),
  ]
}

const consequenceInWords = { success: 'is done', retry: 'waits and sends it again', permanent_failure: 'makes a dead letter', try_again: 'tries again' } as const

function deadLettersOf({ deadLetters }: RetryContract): readonly string[] {
  return [
    bullets([
      `Topic \`${deadLetters.topic}\`, key \`${deadLetters.key}\`, kept for ${inWords(deadLetters.retentionMs)}.`,
      ...deadLetters.kept.map((one) => `Kept: ${one}.`),
      `Not kept: ${deadLetters.notKept.join('; ')}.`,
      ...deadLetters.replay.map((one) => `Replay: ${one}.`),
    ]),
    table(['Reason', 'State', 'Meaning'], deadLetters.reasons.map(({ reason, meaning }) => [`\`${reason}\``, `\`${deadState(reason)}\``, meaning])),
  ]
}

function alertsOf({ alerts }: RetryContract): readonly string[] {
  return [table(['Alert', 'Severity', 'Fires when', 'Means', 'Runbook'],
    alerts.map(({ name, severity, measure, condition, meaning, runbook }) => [name, severity, `${measure}: ${condition}`, meaning, runbook]))]
}

function handOffsOf({ handOffs }: RetryContract): readonly string[] {
  const codes = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(' ')
  return [table(['To', 'May rely on', 'Topics', 'Fields', 'Metrics', 'Documents'],
    handOffs.map(({ to, may, topics, fields, metrics, documents }) => [to, may, codes(topics), codes(fields), codes(metrics), documents.join(' ')]))]
}
