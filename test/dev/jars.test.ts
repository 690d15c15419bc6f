import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { withFileLock } from '../../deploy/dev/file-lock.ts'
import { kafkaJars } from '../../deploy/dev/kafka/jars.ts'
import { identify } from '../../deploy/dev/process-identity.ts'

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-jars-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Puts a Maven in front of the path that counts its runs and does what the script says; `$target` is where the jars go. */
async function fakeMaven(t: TestContext, script: string): Promise<string> {
  const folder = await temporaryFolder(t)
  const path = process.env['PATH']
  t.after(() => {
    process.env['PATH'] = path
  })
  const lines = [
    '#!/bin/sh', 'test "$1" = --version && exit 0', `echo run >> ${folder}/runs`,
    'for a; do case "$a" in -DoutputDirectory=*) target=${a#*=};; esac; done', script,
  ]
  await writeFile(join(folder, 'mvn'), lines.join('\n'), { mode: 0o755 })
  process.env['PATH'] = `${folder}:${path}`
  return join(folder, 'runs')
}

const silent = { write: () => true, isTTY: false }

test('many starters fetch once, and find the folder whole', async (t) => {
  const runs = await fakeMaven(t, 'mkdir -p "$target"; echo a > "$target/a.jar"; sleep 0.2; echo b > "$target/b.jar"')
  const folder = await temporaryFolder(t)
  const found = await Promise.all([1, 2, 3].map(async () => readdir(await kafkaJars({ folder, progress: silent }))))
  assert.deepEqual(found, [1, 2, 3].map(() => ['a.jar', 'b.jar']))
  assert.equal(await readFile(runs, 'utf8'), 'run\n')
  const home = join(folder, (await readdir(folder))[0]!)
  assert.deepEqual(await readdir(home), ['libs'], 'nothing is left of the fetch')
})

test('a fetch that fails leaves nothing, says what Maven said, and is tried again', async (t) => {
  const folder = await temporaryFolder(t)
  await fakeMaven(t, 'mkdir -p "$target"; echo a > "$target/a.jar"; echo "[ERROR] no network"; exit 1')
  await assert.rejects(kafkaJars({ folder, progress: silent }), /mvn ended with exit code 1[^]*KAFKA_BROKERS[^]*no network/)
  await fakeMaven(t, 'mkdir -p "$target"; echo a > "$target/a.jar"')
  assert.deepEqual(await readdir(await kafkaJars({ folder, progress: silent })), ['a.jar'])
})

test('progress is one line where it is piped, and a line that is rewritten on a terminal', async (t) => {
  await fakeMaven(t, 'mkdir -p "$target"; echo "Downloaded from central: x"; echo "Downloaded from central: y"')
  const outputFor = async (isTTY: boolean): Promise<string> => {
    let output = ''
    const progress = { isTTY, write: (text: string | Uint8Array) => (output += String(text)) !== '' }
    await kafkaJars({ folder: await temporaryFolder(t), progress })
    return output
  }
  assert.match(await outputFor(false), /^Fetching Apache Kafka [^\r\n]+\n$/)
  assert.match(await outputFor(true), /^Fetching[^\n]+\r[^\n]+ 2 files[^\n]+$/)
})

test('a lock is held by one at a time, and one left by a dead process is taken over', async (t) => {
  const file = join(await temporaryFolder(t), 'lock')
  let holders = 0
  const work = async (): Promise<void> => {
    assert.equal(++holders, 1)
    await new Promise(setImmediate)
    holders--
  }
  await Promise.all([1, 2, 3, 4].map(() => withFileLock(file, work)))
  await writeFile(file, JSON.stringify({ ...identify(process.pid), pid: 2 ** 22 + 1 }))
  await withFileLock(file, work)
  await mkdir(file)
  await assert.rejects(withFileLock(file, work), /delete it if nothing runs/)
})
