import type { Stage } from './stage.ts'

/** What can be done now, while it stays up. */
export function hints({ services, brokers, logFolder }: Pick<Stage, 'services' | 'brokers' | 'logFolder'>, isFound: boolean): string[] {
  return [
    '',
    'It stays up: press Ctrl-C to end it. In another terminal, in this folder' + (isFound ? ':' : ` (with KAFKA_BROKERS=${brokers}):`),
    '  an event of your own        npx posthouse events send --type order.created --data \'{"order": 1}\' --wait',
    '  an endpoint of your own     npx posthouse listen --port 4000',
    '                              npx posthouse subscriptions create --url http://127.0.0.1:4000/ --type \'*\'',
    '  every attempt, as it ends   npx posthouse deliveries tail',
    `  metrics                     ${Object.values(services.metricsUrls).join('  ')}`,
    `  logs                        ${logFolder}`,
  ]
}
