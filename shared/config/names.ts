import { settings } from './settings.ts'

const known: ReadonlySet<string> = new Set(Object.values(settings).map((setting) => setting.name))

/** What other Kafka tools call the same thing. */
const alsoKnownAs: Readonly<Record<string, string>> = {
  KAFKA_BOOTSTRAP_SERVERS: 'KAFKA_BROKERS',
  KAFKA_BROKER: 'KAFKA_BROKERS',
  KAFKA_SASL_USER: 'KAFKA_SASL_USERNAME',
  KAFKA_SSL_CA_FILE: 'KAFKA_TLS_CA_FILE',
  KAFKA_SSL_CERT_FILE: 'KAFKA_TLS_CERT_FILE',
  KAFKA_SSL_KEY_FILE: 'KAFKA_TLS_KEY_FILE',
}

/**
 * Kubernetes puts the address of every service of a namespace into every pod, as `<NAME>_SERVICE_HOST`, `<NAME>_PORT_9400_TCP_ADDR` and so on.
 * A service called posthouse-something must not stop posthouse from starting. Such a `<NAME>_PORT` holds a `tcp://` URL.
 */
const isServiceLink = (name: string, text: string): boolean =>
  /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name) ||
  (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text))

/** Names of ours in the environment that nothing reads, each as a problem with the nearest name that exists. */
export const unknownNames = (env: Readonly<Record<string, string | undefined>>): readonly string[] => {
  const problems: string[] = []
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || text === '' || known.has(name) || isServiceLink(name, text)) continue
    const isOurs = name.startsWith('POSTHOUSE_') && !name.startsWith('POSTHOUSE_TEST_')
    // KAFKA_ names belong to others too, so only those are ours to judge that can only mean a connection.
    const isConnection = /^KAFKA_(SASL|TLS|SECURITY)_/.test(name) || alsoKnownAs[name] !== undefined
    if (!isOurs && !isConnection) continue
    if (alsoKnownAs[name] !== undefined && env[alsoKnownAs[name]]) continue
    const meant = alsoKnownAs[name] ?? nearest(name)
    problems.push(`${name} is not a setting of posthouse${meant === null ? ': remove it, or see `posthouse config print` for those there are' : `: did you mean ${meant}?`}`)
  }
  return problems
}

/** The known name with the fewest edits, or null where none is near enough to be what was meant. */
const nearest = (name: string): string | null => {
  let best: string | null = null
  let fewest = Math.max(2, Math.floor((name.length - 'POSTHOUSE_'.length) / 3)) + 1
  for (const candidate of known) {
    const edits = editDistance(name, candidate)
    if (edits < fewest) [best, fewest] = [candidate, edits]
  }
  return best
}

/** Levenshtein's distance: insertions, deletions and replacements that turn one text into the other. */
const editDistance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}
