import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../shared/config/config.ts'
import { parseTierSuffix } from '../../shared/domain/hops.ts'
import { topicCatalogue, type TopicSpec } from '../../shared/kafka/topics.ts'
import { readme } from './documents.ts'
import { codesIn, tableOf } from './markdown.ts'

const result = readConfig({ KAFKA_BROKERS: '127.0.0.1:9092' })
assert.ok('config' in result)
const { config } = result
const { prefix, partitions, tierPartitions } = config.topics
const catalogue = topicCatalogue({ prefix, partitions, tierPartitions, tiersMs: config.tiersMs })

const dayMs = 86_400_000

/** How a topic's row has to be written. `growth` in the partitions' cell: one is one, and what never grows says so. */
function cellsFor({ name, partitions, growth, config }: TopicSpec): { readonly partitions: string; readonly cleanup: string; readonly kept: RegExp } {
  const suffix = name.startsWith(`${prefix}retry.`) ? name.slice(`${prefix}retry.`.length) : ''
  const delayMs = parseTierSuffix(suffix) ?? 0
  const days = (key: string, lessMs = 0): number => (Number(config[key]) - lessMs) / dayMs
  const kept = config['retention.ms'] === undefined
    ? `^the last of each key; tombstones ${days('delete.retention.ms')} d`
    : `^${delayMs > 0 ? 'its delay \\+ ' : ''}${days('retention.ms', delayMs)} d`
  return {
    partitions: growth === 'fixed' ? `${partitions}, never more` : String(partitions),
    cleanup: (config['cleanup.policy'] ?? '').replaceAll(',', ', '),
    kept: new RegExp(`${kept}(,|$)`),
  }
}

test('the README has every topic with its partitions, cleanup and retention, and no other', () => {
  const rows = new Map(tableOf(readme, 'Topic').rows.flatMap((cells) => codesIn(cells[0] ?? '').map((name) => [name, cells] as const)))
  assert.deepEqual([...rows.keys()].sort(), [...config.events.topics, ...catalogue.map(({ name }) => name)].sort())
  for (const spec of catalogue) {
    const [, partitions, cleanup, kept = ''] = rows.get(spec.name) ?? []
    const expected = cellsFor(spec)
    assert.deepEqual({ name: spec.name, partitions, cleanup }, { name: spec.name, partitions: expected.partitions, cleanup: expected.cleanup })
    assert.match(kept, expected.kept, spec.name)
  }
})
