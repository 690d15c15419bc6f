import { posix } from 'node:path'

/** Source text by path from the project's root, with `/`. */
export type Sources = ReadonlyMap<string, string>

/** Used by services, cli and deploy alike; they know nothing of records, Kafka or HTTP. */
const beside = ['shared/config', 'shared/log', 'shared/metrics', 'shared/service-server', 'shared/lifecycle', 'shared/version.ts']
const lower = ['shared/records', 'shared/kafka', 'shared/http']
const belowServices = ['shared/contract', 'shared/simulation', 'shared/kafka-service', 'shared/subscriptions', 'shared/lookup', 'shared/dead-letters', ...lower, 'shared/domain', ...beside]

/** Which layers a layer may import, besides itself. `services/*` is each service by itself: none may import another. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  'services/*': belowServices,
  // The command line starts services and local runs, and is the only one that may.
  'cli': [...belowServices, 'services/*', 'deploy', 'receiver'],
  'deploy': [...belowServices, 'receiver'],
  'receiver': [],
  // What every service does before its own part.
  'shared/kafka-service': ['shared/kafka', 'shared/domain', ...beside],
  'shared/subscriptions': [...lower, 'shared/domain'],
  // What commands and the admin service read from topics for people.
  'shared/lookup': ['shared/subscriptions', ...lower, 'shared/domain'],
  // What they do with dead letters.
  'shared/dead-letters': ['shared/subscriptions', ...lower, 'shared/domain'],
  ...Object.fromEntries(lower.map((layer) => [layer, ['shared/domain']])),
  ...Object.fromEntries(beside.map((layer) => [layer, ['shared/domain', ...beside]])),
  // Pure: the retry contract, made of the code that decides.
  'shared/contract': ['shared/domain'],
  // Pure: the same code in virtual time.
  'shared/simulation': ['shared/domain'],
  'shared/domain': [],
  'test': [...belowServices, 'services/*', 'cli', 'deploy', 'receiver'],
}

/** Packages with one home: what knows their faults stays there. */
const homeOf: Readonly<Record<string, string>> = {
  'kafkajs': 'shared/kafka', 'kafkajs-snappy': 'shared/kafka', 'lz4-napi': 'shared/kafka',
  'undici': 'shared/http', 'avsc': 'shared/records', 'pino': 'shared/log', 'commander': 'cli',
}

/** The only modules of Node that a layer may import; others may import any. */
const onlyModules: Readonly<Record<string, readonly string[]>> = { 'shared/domain': ['node:crypto'], 'shared/contract': [], 'shared/simulation': [] }
/** Layers without packages: who receives webhooks may copy `receiver` alone. */
const withoutPackages = ['shared/domain', 'shared/contract', 'shared/simulation', 'receiver']

/** What is imported, with or without bindings, for types or at run time. */
export function importsOf(source: string): string[] {
  const pattern = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\()\s*(['"])([^'"\n]+)\1/g
  return [...source.matchAll(pattern)].map((match) => match[2] ?? '')
}

/** The layer a path belongs to (`services/router`, `shared/kafka`, `cli`); null where there is none. */
export function layerOf(path: string): string | null {
  const [top = '', second] = path.split('/')
  const layer = (top === 'services' || top === 'shared') && second !== undefined ? `${top}/${second}` : top
  return ruleOf(layer) in mayImport ? layer : null
}

function ruleOf(layer: string): string {
  return layer.startsWith('services/') ? 'services/*' : layer
}

/** Every import that goes the wrong way, as a sentence. */
export function layeringViolations(sources: Sources): string[] {
  return [...sources].flatMap(([path, source]) => {
    const layer = layerOf(path)
    if (layer === null) return [`${path} lies in no layer: give its folder a place in test/support/layers.ts`]
    return importsOf(source).flatMap((imported) => {
      const why = imported.startsWith('.')
        ? whyNotFile(layer, posix.join(posix.dirname(path), imported))
        : whyNotModule(layer, imported)
      return why === null ? [] : [`${path} imports ${imported}: ${why}`]
    })
  })
}

function whyNotFile(layer: string, target: string): string | null {
  if (target === 'package.json') return null
  const targetLayer = layerOf(target)
  if (targetLayer === null) return 'it lies in no layer'
  if (targetLayer === layer || mayImport[ruleOf(layer)]?.includes(ruleOf(targetLayer)) && ruleOf(layer) !== ruleOf(targetLayer)) return null
  return `${layer} may not import ${targetLayer}`
}

function whyNotModule(layer: string, imported: string): string | null {
  if (layer === 'test') return null
  if (imported.startsWith('node:')) {
    const only = onlyModules[layer]
    return only && !only.includes(imported) ? `${layer} imports nothing of Node but ${only.join(', ')}` : null
  }
  if (withoutPackages.includes(layer)) return `${layer} imports no packages`
  const name = imported.split('/').slice(0, imported.startsWith('@') ? 2 : 1).join('/')
  const home = homeOf[name]
  return home === undefined || home === layer ? null : `only ${home} may import ${name}`
}

/** Files too large to be of one concern (tests may be), and names under which anything could grow. */
export function shapeViolations(sources: Sources, { mostLines = 300 } = {}): string[] {
  return [...sources].flatMap(([path, source]) => {
    const name = posix.basename(path, posix.extname(path))
    const lines = source.split('\n').length - 1
    return [
      ...(lines > mostLines && layerOf(path) !== 'test' ? [`${path} has ${lines} lines, over ${mostLines}: move a concern out`] : []),
      ...(/^(utils?|helpers?|misc|common)$/.test(name) ? [`${path}: name what it owns`] : []),
      ...(name === 'index' ? [`${path}: no barrels, import the file itself`] : []),
    ]
  })
}
