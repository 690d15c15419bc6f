import type { Command } from 'commander'
import { readConfig } from '../../shared/config/config.ts'
import { printConfig } from '../../shared/config/print-config.ts'
import { addCommand, addNoun, act } from '../command.ts'
import type { Context } from '../context.ts'
import { announcement, effectiveEnvironment, wrongConfiguration } from '../settings.ts'

export function addConfigCommands(program: Command): void {
  const config = addNoun(program, 'config', 'the settings posthouse reads from its environment')
  addCommand(config, 'print', 'print every setting with its value and where that comes from; secrets as [set]')
    .option('--set', 'only those that are set')
    .action(act(print))
}

/** Prints what there is even when it is wrong, as that is when it is needed; the problems follow, with exit code 78. */
async function print({ output }: Context, { set = false }: { readonly set?: boolean }): Promise<void> {
  const effective = effectiveEnvironment()
  if (effective.local) output.warn(announcement(effective.local))
  const rows = printConfig(effective.env)
    .map((row) => ({ ...row, source: effective.localNames.has(row.name) ? 'local run' as const : row.source }))
    .filter(({ source }) => !set || source !== 'default')
  output.rows(rows, [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'VALUE', text: ({ value }) => value },
    { title: 'SOURCE', text: ({ source }) => source },
    { title: 'MEANING', text: ({ doc }) => doc },
  ])
  const result = readConfig(effective.env, { requireKafka: false })
  if ('problems' in result) throw wrongConfiguration(result.problems)
}
