import { parseArgs } from 'node:util'
import { corpusSize } from './corpus.ts'
import { endpointNames, type EndpointName } from './endpoints.ts'

export const killable = ['router', 'delivery', 'retry-tier'] as const
export type Killable = (typeof killable)[number]

/** `secret`: one endpoint verifies with another secret. `log`: the receiver keeps one delivery out of its log. */
export const sabotages = ['secret', 'log'] as const
export type Sabotage = (typeof sabotages)[number]

export type SampleOptions = {
  /** End when everything has settled. */
  readonly isOnce: boolean
  readonly isJson: boolean
  readonly endpoints: readonly EndpointName[]
  readonly events: number
  /** Events a second. */
  readonly rate: number
  readonly kill: Killable | null
  readonly sabotage: Sabotage | null
  /** Where everything is kept; null: the project's `.posthouse`. */
  readonly folder: string | null
}

/** At which two cores still have time to spare, so that what is measured is not their queue. */
const defaultRate = 20

export const usage = `npm start [-- OPTIONS]

Starts a Kafka of its own, posthouse's services and a receiver with four endpoints, sends GitHub's ${corpusSize} example webhooks
as events, and shows what happens. It then stays up for events and endpoints of your own.

  --once              end when everything has settled: 0 when every delivery is accounted for, else 1
  --endpoints NAMES   some of ${endpointNames.join(',')}
  --events N          send N events: the examples again and again
  --rate N            events a second (${defaultRate})
  --kill SERVICE      meanwhile kill -9 one of ${killable.join(', ')} every few seconds
  --output json       print only the account, as JSON, on standard output (npm's own lines: npm start --silent)
  --sabotage WHAT     break something, to see the account fail: secret (one endpoint has a wrong one), log (one delivery is hidden)
  --folder PATH       keep everything there instead of in .posthouse
  --help

With KAFKA_BROKERS set that Kafka is used, with topics of a prefix of their own that are deleted in the end.`

export type ParsedOptions = { readonly options: SampleOptions } | { readonly help: true } | { readonly problem: string }

export function parseOptions(args: readonly string[]): ParsedOptions {
  try {
    return read(args)
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

function read(args: readonly string[]): ParsedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      once: { type: 'boolean' }, help: { type: 'boolean' }, endpoints: { type: 'string' }, events: { type: 'string' }, rate: { type: 'string' },
      kill: { type: 'string' }, output: { type: 'string' }, sabotage: { type: 'string' }, folder: { type: 'string' },
    },
  })
  if (values.help) return { help: true }
  return {
    options: {
      isOnce: values.once ?? false,
      isJson: oneOf('--output', ['json', 'text'], values.output ?? 'text') === 'json',
      endpoints: values.endpoints === undefined ? endpointNames : endpointsOf(values.endpoints),
      events: wholeNumber('--events', values.events, corpusSize, 1_000_000),
      rate: wholeNumber('--rate', values.rate, defaultRate, 10_000),
      kill: values.kill === undefined ? null : oneOf('--kill', killable, values.kill),
      sabotage: values.sabotage === undefined ? null : oneOf('--sabotage', sabotages, values.sabotage),
      folder: values.folder ?? null,
    },
  }
}

/** In the order of the sample, each once. */
function endpointsOf(text: string): readonly EndpointName[] {
  const named = text.split(',').map((name) => oneOf('--endpoints', endpointNames, name.trim()))
  return endpointNames.filter((name) => named.includes(name))
}

function oneOf<Value extends string>(option: string, allowed: readonly Value[], text: string): Value {
  const found = allowed.find((value) => value === text)
  if (found === undefined) throw new Error(`${option} cannot be "${text}": give one of ${allowed.join(', ')}`)
  return found
}

function wholeNumber(option: string, text: string | undefined, otherwise: number, most: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (!/^\d{1,9}$/.test(text) || value < 1 || value > most) throw new Error(`${option} cannot be "${text}": give a whole number from 1 to ${most}`)
  return value
}
