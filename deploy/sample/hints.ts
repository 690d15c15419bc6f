import type { Stage } from './stage.ts'

/** What can be done now, while it stays up. `isFound`: commands find this run by themselves; else they are told by their environment. */
export function hints({ services, environment, logFolder }: Pick<Stage, 'services' | 'environment' | 'logFolder'>, isFound: boolean): string[] {
  const named = Object.entries(environment).map(([name, value]) => `${name}=${value}`).join(' ')
  return [
    '',
    'It stays up: press Ctrl-C to end it. In another terminal, in the project\'s folder:',
    ...(isFound ? [] : [`  this run, not another       export ${named}`]),
    '  an event of your own        npx posthouse events send --type order.created --data \'{"order": 1}\' --wait',
    '  an endpoint of your own     npx posthouse listen --port 4000',
    '                              npx posthouse subscriptions create --url http://127.0.0.1:4000/ --type \'*\'',
    '  every attempt, as it ends   npx posthouse deliveries tail',
    `  metrics                     ${Object.values(services.metricsUrls).join('  ')}`,
    `  logs                        ${logFolder}`,
  ]
}
