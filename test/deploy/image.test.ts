import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { projectRoot } from '../../deploy/dev/folders.ts'

type Instruction = { readonly name: string; readonly words: readonly string[]; readonly text: string }

/** The stages of the Dockerfile, each with what follows its FROM. */
function readStages(): readonly (readonly Instruction[])[] {
  const stages: Instruction[][] = []
  for (const line of readFileSync(join(projectRoot, 'Dockerfile'), 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [name = '', ...words] = line.split(' ')
    assert.match(name, /^[A-Z]+$/, `an instruction a line, and none goes on in the next: ${line}`)
    if (name === 'FROM') stages.push([])
    stages.at(-1)!.push({ name, words, text: words.join(' ') })
  }
  return stages
}

const stages = readStages()
const final = stages.at(-1)!
const instruction = (name: string): Instruction => {
  const found = final.filter((one) => one.name === name)
  assert.equal(found.length, 1, name)
  return found[0]!
}
/** What the image gets of the project. */
const copied = final.filter(({ name, words }) => name === 'COPY' && !words[0]!.startsWith('--from=')).flatMap(({ words }) => words.slice(0, -1))

test('both stages are of the Node.js that posthouse needs, and packages come without tests and install scripts', () => {
  const { engines } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as { readonly engines: { readonly node: string } }
  const [, least] = /^>=(\d+)$/.exec(engines.node) ?? []
  assert.equal(stages.length, 2)
  for (const stage of stages) assert.match(stage[0]!.text, new RegExp(`^node:${least}-`))
  const npm = stages[0]!.find(({ name }) => name === 'RUN')!.text
  assert.match(npm, /^npm ci --omit=dev --ignore-scripts\b/)
  // lz4 is an optional package of a package.
  assert.doesNotMatch(npm, /--omit=optional/)
  const from = final.find(({ name, words }) => name === 'COPY' && words[0]!.startsWith('--from='))!
  assert.equal(stages[0]![0]!.words.at(-1), from.words[0]!.slice('--from='.length))
})

test('it does not run as root, and starts the command line', () => {
  assert.match(instruction('USER').text, /^[1-9]\d*:[1-9]\d*$/)
  const workdir = instruction('WORKDIR').text
  const entry = JSON.parse(instruction('ENTRYPOINT').text) as readonly string[]
  assert.deepEqual(entry, ['node', `${workdir}/cli/posthouse.js`])
  assert.deepEqual(JSON.parse(instruction('CMD').text), ['--help'])
  assert.equal(instruction('EXPOSE').text, '9400')
})

test('what is copied is there and is not kept out, and nothing else gets near', () => {
  const ignored = readFileSync(join(projectRoot, '.dockerignore'), 'utf8').split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(ignored[0], '*')
  const wanted = [...copied, ...stages[0]!.filter(({ name }) => name === 'COPY').flatMap(({ words }) => words.slice(0, -1))]
  for (const path of wanted) {
    assert.ok(existsSync(join(projectRoot, path)), path)
    assert.ok(ignored.includes(`!${path}`), `${path} must be in .dockerignore, as !${path}`)
  }
  assert.deepEqual(ignored.slice(1).filter((line) => !line.startsWith('!')), ['deploy/*'])
  assert.deepEqual(new Set(ignored.filter((line) => line.startsWith('!') && line !== '!deploy')), new Set(wanted.map((path) => `!${path}`)))
})

/** The last stage as a folder, its packages linked to ours: those that `npm ci --omit=dev` installs. */
function layOut(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-image-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const { name, words } of final) {
    if (name !== 'COPY' || words[0]!.startsWith('--from=')) continue
    const target = words.at(-1)!
    for (const path of words.slice(0, -1)) cpSync(join(projectRoot, path), target.endsWith('/') ? join(folder, target, path) : join(folder, target), { recursive: true })
  }
  const { packages } = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as { readonly packages: Readonly<Record<string, { readonly dev?: boolean }>> }
  for (const [path, { dev = false }] of Object.entries(packages)) {
    // Packages within packages come with those.
    if (dev || !/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) || path.startsWith('node_modules/node-linux-') || !existsSync(join(projectRoot, path))) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    symlinkSync(join(projectRoot, path), join(folder, path))
  }
  return folder
}

test('with what the image gets, the command line and every service start', async (t) => {
  const folder = layOut(t)
  assert.ok(statSync(join(folder, 'cli/posthouse.js')).isFile())
  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => spawnSync(
    process.execPath, ['--preserve-symlinks', join(folder, 'cli/posthouse.js'), ...args],
    { cwd: folder, encoding: 'utf8', env: { PATH: process.env['PATH'], ...env }, timeout: 60_000 },
  )
  const strimzi = run(['topics', 'provision', '--format', 'strimzi'])
  assert.equal(strimzi.status, 0, strimzi.stderr)
  assert.match(strimzi.stdout, /kind: KafkaTopic/)

  const services = [...run(['run', '--help']).stdout.matchAll(/"([a-z-]+)"/g)].map(([, name = '']) => name)
  assert.ok(services.includes('router') && services.includes('delivery') && services.includes('retry-tier'))
  for (const name of services) {
    await t.test(name, () => {
      // Everything it imports is loaded before it reads a configuration that is wrong.
      const { status, stdout, stderr } = run(['run', name], { KAFKA_BROKERS: 'kafka:9092', POSTHOUSE_PARTITIONS: 'many' })
      assert.equal(status, 78, `${stdout}${stderr}`)
      assert.match(`${stdout}${stderr}`, /POSTHOUSE_PARTITIONS is /)
    })
  }
})
