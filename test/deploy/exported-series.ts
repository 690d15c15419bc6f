import { readme } from '../docs/documents.ts'
import { codesIn, tableOf } from '../docs/markdown.ts'

/** Series of the admin service; those of the other services are in the README's table, which a test compares with the code. */
const ofAdmin = [
  'posthouse_dead_letters_depth', 'posthouse_dead_letters_oldest_age_seconds', 'posthouse_unowned_tier_depth', 'posthouse_unowned_tier_overdue',
  'posthouse_unowned_lag',
]

const documented = tableOf(readme, 'Series').rows.flatMap(([name = '', type = '']) => {
  const [series = ''] = codesIn(name)
  return type === 'histogram' ? ['_bucket', '_count', '_sum'].map((ending) => `${series}${ending}`) : [series]
})

/** Every series of ours that can be scraped. */
export const knownSeries: ReadonlySet<string> = new Set([...documented, ...ofAdmin])

/** Series of ours in an expression. */
export const seriesIn = (expression: string): readonly string[] => [...expression.matchAll(/\bposthouse_[a-z0-9_]+\b/g)].map(([name]) => name)
