import { Argument, type Command } from 'commander'
import { serviceNames, type ServiceName } from '../../shared/config/settings.ts'
import { runService, type ServiceDefinition } from '../../shared/lifecycle/run-service.ts'
import { announcement, effectiveEnvironment } from '../settings.ts'

type Start = ServiceDefinition['start']

/** Loaded only when run: a command must not wait for what it does not use. */
const loaders: { readonly [Name in ServiceName]?: () => Promise<Start> } = {
  'router': async () => (await import('../../services/router/service.ts')).run,
  'delivery': async () => (await import('../../services/delivery/service.ts')).run,
  'retry-tier': async () => (await import('../../services/retry-tier/service.ts')).run,
}

const runnable = serviceNames.filter((name) => name in loaders)

/** `posthouse run NAME` is the service: its log, its signals and its exit codes, as services/NAME/main.ts has them. */
export function addRunCommand(program: Command): void {
  program.command('run')
    .summary('run a service in this process')
    .description('Run a service in this process, until SIGTERM or Ctrl-C. Its log goes to standard output, one JSON object a line.')
    .addArgument(new Argument('<service>', 'which one').choices(runnable))
    .action(async (name: ServiceName) => {
      const effective = effectiveEnvironment()
      if (effective.local) process.stderr.write(`posthouse: ${announcement(effective.local)}\n`)
      const start = await loaders[name]?.()
      if (start) await runService({ name, start, env: effective.env })
    })
}
