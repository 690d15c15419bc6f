import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { projectRoot } from '../../deploy/dev/folders.ts'

const run = promisify(execFile)
const folder = await mkdtemp(join(tmpdir(), 'posthouse-package-'))
after(() => rm(folder, { recursive: true, force: true }))

/** Without what `npm test` hands down of this project's settings, and without a cache that could stand in for the network. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_TEST_CONTEXT$/i.test(name))),
  npm_config_cache: join(folder, 'cache'), npm_config_offline: 'true', npm_config_update_notifier: 'false',
}
const npm = async (cwd: string, ...args: string[]): Promise<string> => (await run('npm', args, { cwd, env })).stdout
const project = join(folder, 'project')
const installed = join(project, 'node_modules', 'posthouse-receiver')
const consumer = join(projectRoot, 'test/receiver/consumer')

/** Packs a copy, so that nothing is built in this tree, and installs the archive in an empty project. */
async function packAndInstall(): Promise<void> {
  const source = join(folder, 'source', 'receiver')
  await cp(join(projectRoot, 'receiver'), source, { recursive: true, filter: (path) => !/[/\\](dist|node_modules)$/.test(path) })
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'source', 'node_modules'))
  await npm(source, 'pack', '--ignore-scripts=false', '--pack-destination', folder)
  const archive = (await readdir(folder)).find((name) => name.endsWith('.tgz'))
  assert.ok(archive !== undefined, 'npm pack made an archive')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }')
  await npm(project, 'install', '--offline', join(folder, archive))
}
const packed = packAndInstall()

type PackageJson = { name: string; version: string; dependencies?: object; peerDependencies?: object; optionalDependencies?: object; engines: { node: string } }
const packageJson = async (path: string): Promise<PackageJson> => JSON.parse(await readFile(path, 'utf8')) as PackageJson

test('the archive holds built JavaScript, types, licence and README, and installs without a network', async () => {
  await packed
  const files = (await readdir(installed, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1).replaceAll('\\', '/')).sort()
  const sources = (await readdir(join(projectRoot, 'receiver'))).filter((name) => name.endsWith('.ts')).map((name) => name.slice(0, -3))
  const expected = ['LICENSE', 'README.md', 'package.json'].concat(sources.flatMap((name) => [`dist/${name}.js`, `dist/${name}.d.ts`]))
  assert.deepEqual(files, expected.sort())
  const manifest = await packageJson(join(installed, 'package.json'))
  assert.deepEqual([manifest.dependencies, manifest.peerDependencies, manifest.optionalDependencies], [undefined, undefined, undefined])
  assert.deepEqual((await readdir(join(project, 'node_modules'))).filter((name) => !name.startsWith('.')), ['posthouse-receiver'])
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const imports = [...(await readFile(join(installed, file), 'utf8')).matchAll(/\bfrom '([^']+)'/g)].map((match) => match[1] ?? '')
    for (const imported of imports) assert.match(imported, /^node:|^\.\/[\w-]+\.js$/, `${file} imports ${imported}`)
  }
  assert.equal(manifest.version, (await packageJson(join(projectRoot, 'package.json'))).version)
})

/** This Node, and others that are on the path and new enough, by version. */
async function nodes(oldest: number): Promise<Map<string, string>> {
  const candidates = (process.env['PATH'] ?? '').split(delimiter).map((directory) => join(directory, 'node')).filter((path) => existsSync(path))
  const found = new Map<string, string>()
  for (const path of [process.execPath, ...candidates]) {
    const { stdout } = await run(await realpath(path), ['--version'])
    const version = stdout.trim()
    if (Number(/^v(\d+)/.exec(version)?.[1]) >= oldest && !found.has(version)) found.set(version, path)
  }
  return found
}

test('it is used from plain JavaScript, on every Node here that it says it runs on', async (t) => {
  await packed
  await cp(join(consumer, 'use.js'), join(project, 'use.js'))
  const { engines } = await packageJson(join(installed, 'package.json'))
  const found = await nodes(Number(/^>=(\d+)$/.exec(engines.node)?.[1]))
  for (const [version, path] of found) {
    const { stdout } = await run(path, ['use.js'], { cwd: project, env })
    assert.equal(stdout, `ok ${version}\n`)
  }
  t.diagnostic(`used with ${[...found.keys()].join(', ')}`)
})

test('its types hold with the types of Node, and with those of the web', async () => {
  await packed
  await cp(join(consumer, 'use.ts.txt'), join(project, 'use.ts'))
  const base = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true, module: 'nodenext', target: 'es2022' }
  const setups = {
    node: { lib: ['es2022'], types: ['node'], typeRoots: [join(projectRoot, 'node_modules/@types')] },
    web: { lib: ['es2022', 'dom', 'dom.iterable'], types: [] },
  }
  for (const [name, setup] of Object.entries(setups)) {
    const config = join(project, `tsconfig.${name}.json`)
    await writeFile(config, JSON.stringify({ compilerOptions: { ...base, ...setup }, files: ['use.ts'] }))
    await run(join(projectRoot, 'node_modules/.bin/tsc'), ['--project', config], { cwd: project })
      .catch((error: { stdout: string }) => assert.fail(`with the types of ${name}:\n${error.stdout}`))
  }
})
