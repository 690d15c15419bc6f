import type { ClassificationRule, Consequence, ErrorRule, StatusRule } from './classification.ts'
import type { RetryContract } from './contract.ts'
import { table } from './markdown-parts.ts'

/** Statuses by range, then errors: one row each where both phases mean the same. */
export function classificationTables({ classification, backoff }: RetryContract): readonly string[] {
  const statuses = classification.filter((rule): rule is StatusRule => rule.on === 'status')
  const errors = classification.filter((rule): rule is ErrorRule => rule.on === 'error')
  const then = (rule: ClassificationRule): string => (rule.default === null ? '' : 'default: ') + consequenceInWords[rule.leadsTo]
  return [
    `A failure that may pass is tried again until attempt ${backoff.maxAttempts}; that one ends in \`dlq\`.`,
    table(['Status', 'Class', 'Then', 'Why'], together(statuses).map((rules) => [rules.map(rangeOf).join(', '), rules[0]!.class, then(rules[0]!), rules[0]!.reason ?? ''])),
    'Without a status, by whether any byte of the request may have left:',
    table(['Error', 'Meaning', 'Before', 'After', 'Then', 'Why'], errors.filter(({ phase }) => phase === 'before_send').map((before) => {
      const after = errors.find(({ error, phase }) => error === before.error && phase === 'sent') ?? before
      // Of one that is ambiguous in one phase only, that one says more.
      const told = before.default === null ? after : before
      return [`\`${before.error}\``, before.meaning, before.class, after.class, then(told), before.reason ?? '']
    })),
  ]
}

/** Ranges that mean the same for the same reason, in one row where the first of them stands. */
function together(rules: readonly StatusRule[]): readonly (readonly StatusRule[])[] {
  return [...Map.groupBy(rules, (rule) => JSON.stringify([rule.class, rule.leadsTo, rule.reason])).values()]
}

const rangeOf = ({ from, to }: StatusRule): string => (from === to ? String(from) : `${from}–${to}`)

const consequenceInWords: Readonly<Record<Consequence, string>> = {
  success: '`success`', retry: 'wait and try again', permanent_failure: '`permanent_failure`', try_again: 'the same attempt again, not counted',
}
