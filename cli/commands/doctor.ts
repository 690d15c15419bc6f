import type { Command } from 'commander'
import { CliError, toCliError } from '../cli-error.ts'
import { act, addCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { checkAllTopics, checkBrokers, checkClock, checkConfiguration, checkGroups, checkSubscriptions } from '../doctor-checks.ts'
import { fail, printFindings, type Finding } from '../doctor-finding.ts'
import { withKafka, type KafkaSession } from '../kafka-session.ts'

const help = `
Exit code 0 when nothing fails, 1 when something does, 69 when Kafka cannot be reached, 78 when the configuration is wrong.
Reads only, but for one record without a value in the topic endpoint-health, by which it learns the brokers' clock.`

type Check = { readonly name: string; readonly run: (context: Context, kafka: KafkaSession) => Promise<readonly Finding[]> }

const checks: readonly Check[] = [
  { name: 'kafka', run: (_, kafka) => checkBrokers(kafka) },
  { name: 'topics', run: (_, kafka) => checkAllTopics(kafka) },
  { name: 'clock', run: checkClock },
  { name: 'services', run: checkGroups },
  { name: 'subscriptions', run: checkSubscriptions },
]

export function addDoctorCommand(program: Command): void {
  addCommand(program, 'doctor', 'check that events would be delivered, and say what to do where not')
    .addHelpText('after', help)
    .action(act(doctor))
}

async function doctor(context: Context): Promise<void> {
  const findings: Finding[] = []
  try {
    await withKafka(context, async (kafka) => {
      findings.push(...checkConfiguration())
      for (const { name, run } of checks) findings.push(...await attempt(name, run(context, kafka)))
    })
  } catch (error) {
    if (error instanceof CliError && error.code === 'unreachable') {
      printFindings(
        context.output, [...findings, fail('kafka', error.message, error.hint ?? '')],
      )
    }
    throw error
  }
  printFindings(context.output, findings)
  const failed = findings.filter(({ verdict }) => verdict === 'FAIL').length
  if (failed > 0) {
    throw new CliError(
      'failed', `${failed} ${failed === 1 ? 'check fails' : 'checks fail'}`, 'what to do stands beside each',
    )
  }
}

/** One check that cannot be made says why, and the others go on; an outage or Ctrl-C ends them all. */
async function attempt(name: string, running: Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await running
  } catch (error) {
    const { code, message, hint } = toCliError(error)
    if (code !== 'not_found' && code !== 'failed') throw error
    return [fail(name, message, hint ?? 'mend what stands above first')]
  }
}
