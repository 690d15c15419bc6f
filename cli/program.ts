import { Command } from 'commander'
import { version } from '../shared/version.ts'
import { addConfigCommands } from './commands/config.ts'
import { addContractCommand } from './commands/contract.ts'
import { addDeliveriesCommands } from './commands/deliveries.ts'
import { addDlqCommands } from './commands/dlq.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addEndpointsCommands } from './commands/endpoints.ts'
import { addEventsCommands } from './commands/events.ts'
import { addListenCommand } from './commands/listen.ts'
import { addPolicyCommands } from './commands/policy.ts'
import { addRunCommand } from './commands/run.ts'
import { addSubscriptionsCommands } from './commands/subscriptions.ts'
import { addTopicsCommands } from './commands/topics.ts'

const exitCodesHelp = `
Exit codes:
  0 done          1 failed          2 wrong usage, or --yes is missing
  3 not found     5 conflict, drift 6 done in part
  69 Kafka cannot be reached        75 timed out
  78 wrong configuration            130 interrupted (143 by SIGTERM)

Kafka is named by KAFKA_BROKERS; "posthouse config print" shows every setting.`

/** The whole command line; parsing it runs the command. Errors of usage are thrown, not printed. */
export function createProgram(): Command {
  const program = new Command('posthouse')
    .description('Reliable webhook delivery on Kafka')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: () => {} })
    .addHelpText('after', exitCodesHelp)
  addRunCommand(program)
  addListenCommand(program)
  addDoctorCommand(program)
  addContractCommand(program)
  addTopicsCommands(program)
  addSubscriptionsCommands(program)
  addEventsCommands(program)
  addDeliveriesCommands(program)
  addDlqCommands(program)
  addEndpointsCommands(program)
  addPolicyCommands(program)
  addConfigCommands(program)
  return program
}

/** The longest chain of commands that the words begin with: `posthouse topics check`. */
export function pathOf(program: Command, args: readonly string[]): string {
  const names = [program.name()]
  let at: Command | undefined = program
  for (const arg of args) {
    at = at?.commands.find((command) => command.name() === arg)
    if (!at) break
    names.push(arg)
  }
  return names.join(' ')
}
