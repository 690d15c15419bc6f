import { CliError } from './cli-error.ts'
import type { Context } from './context.ts'

export type ConfirmOptions = { readonly yes?: boolean; readonly dryRun?: boolean }

/**
 * Decides, after a command has printed what it would do, whether it does it: nothing is ever asked, so that scripts and people get
 * the same. False with --dry-run. @throws CliError `confirmation_needed` (exit 2) without --yes, so that a script which forgot it
 * does not go on
 */
export function isConfirmed({ output }: Context, { yes = false, dryRun = false }: ConfirmOptions): boolean {
  if (dryRun) {
    output.note('Nothing was changed (--dry-run).')
    return false
  }
  if (!yes) {
    throw new CliError(
      'confirmation_needed', 'nothing was changed: this is a preview',
      'run the same command with --yes to do it, or with --dry-run to look only',
    )
  }
  return true
}
