import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { test } from 'node:test'
import { projectRoot } from '../deploy/dev/folders.ts'
import { importsOf, layeringViolations, shapeViolations } from './support/layers.ts'

const folders = ['services', 'shared', 'cli', 'deploy', 'receiver', 'test']

function projectSources(): Map<string, string> {
  // Git keeps no empty folders, so one that nothing is in yet is not there in a clone.
  const files = folders.filter((folder) => existsSync(join(projectRoot, folder)))
    .flatMap((folder) => readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]s$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
  return new Map(files.map((file) => [relative(projectRoot, file).split(sep).join('/'), readFileSync(file, 'utf8')]))
}

test('imports go one way, and each package stays at home', () => {
  const sources = projectSources()
  assert.ok(sources.size > 30, 'the sources were found')
  assert.deepEqual(layeringViolations(sources), [])
})

test('a file has one concern and a name of its own', () => {
  assert.deepEqual(shapeViolations(projectSources()), [])
})

test('every form of import is seen', () => {
  const source = [
    `import a from './a.ts'`, `import type {\n  B,\n} from "./b.ts"`, `import './c.ts'`, `export { d } from './d.ts'`,
    `const e = await import('./e.ts')`, `type F = import('./f.ts').F`, `const g = require('g')`,
  ].join('\n')
  assert.deepEqual(importsOf(source), ['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.ts', 'g'])
})

/** One importing file and what it may not import. */
const forbidden = [
  ['services/router/run.ts', '../delivery/worker.ts'],
  ['services/router/run.ts', '../../cli/output.ts'],
  ['services/router/run.ts', 'kafkajs'],
  ['services/delivery/worker.ts', 'undici'],
  ['cli/commands/topics.ts', 'kafkajs/src/consumer/runner.js'],
  ['deploy/sample/main.ts', '../../services/router/run.ts'],
  ['shared/subscriptions/table.ts', '../../services/router/run.ts'],
  ['shared/subscriptions/table.ts', '../config/config.ts'],
  ['shared/records/delivery.ts', '../kafka/producer.ts'],
  ['shared/kafka/producer.ts', '../records/delivery.ts'],
  ['shared/kafka/producer.ts', '../log/log.ts'],
  ['shared/kafka/producer.ts', 'avsc'],
  ['shared/http/client.ts', '../kafka/client.ts'],
  ['shared/domain/decide.ts', '../records/delivery.ts'],
  ['shared/domain/decide.ts', 'node:fs'],
  ['shared/domain/decide.ts', 'zod'],
  ['shared/metrics/registry.ts', '../kafka/metrics.ts'],
  ['receiver/verify.ts', '../shared/domain/signed-headers.ts'],
  ['receiver/verify.ts', 'zod'],
  ['deploy/dev/kafka.ts', '../../test/support/until.ts'],
  ['shared/new/thing.ts', './other.ts'],
] as const

test('what goes the wrong way is found', () => {
  for (const [path, imported] of forbidden) {
    const found = layeringViolations(new Map([[path, `import { x } from '${imported}'\n`]]))
    assert.equal(found.length, 1, `${path} importing ${imported}: ${JSON.stringify(found)}`)
  }
})

test('what goes the right way is not', () => {
  const allowed = [
    ['services/router/run.ts', '../../shared/subscriptions/table.ts'], ['services/router/run.ts', './main.ts'],
    ['services/admin/run.ts', 'prom-client'], ['shared/service-server/server.ts', '../log/log.ts'], ['shared/domain/ids.ts', 'node:crypto'],
    ['cli/commands/run.ts', '../../services/router/run.ts'], ['cli/find.ts', '../deploy/dev/run-file.ts'],
    ['shared/kafka/client.ts', 'kafkajs'], ['test/x.test.ts', 'kafkajs'], ['receiver/verify.ts', 'node:crypto'],
    ['shared/version.ts', '../package.json'],
  ] as const
  for (const [path, imported] of allowed) {
    assert.deepEqual(layeringViolations(new Map([[path, `import { x } from '${imported}'\n`]])), [])
  }
})

test('what is too large or named for anything is found', () => {
  const sources = new Map([['shared/kafka/utils.ts', ''], ['cli/index.ts', ''], ['cli/large.ts', 'x\n'.repeat(301)], ['test/large.ts', 'x\n'.repeat(301)]])
  assert.equal(shapeViolations(sources).length, 3)
})
