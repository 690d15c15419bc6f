/**
 * node deploy/prometheus/rules-file.ts [--runbook URL]
 *
 * Prints the rules file for Prometheus. `posthouse.rules.yml` is what it prints without arguments; a test sees to that.
 */
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { prometheusRules } from './alerts.ts'

const head = `# Made by "node deploy/prometheus/rules-file.ts": change shared/domain/alert-rules.ts or deploy/prometheus/alerts.ts, and print it anew.
# --runbook URL prints it with links to where your people read docs/runbook.md.
`

/** As YAML. `runbook`: what links to the runbook begin with, without the anchor. */
export function rulesFile(runbook?: string): string {
  return head + stringify({ groups: [{ name: 'posthouse', rules: prometheusRules(runbook) }] }, { lineWidth: 0 })
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { runbook: { type: 'string' } } })
  process.stdout.write(rulesFile(values.runbook))
}
