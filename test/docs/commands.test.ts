import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Command } from 'commander'
import { createProgram } from '../../cli/program.ts'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { usage } from '../../deploy/sample/options.ts'
import { exitCodes } from '../../shared/lifecycle/exit-codes.ts'
import { documents, readme } from './documents.ts'
import { codesIn, tableOf } from './markdown.ts'

const program = createProgram()

/** What does something: nouns have only verbs. */
function leavesOf(command: Command, path: string): readonly (readonly [string, Command])[] {
  if (command.commands.length === 0) return [[path, command]]
  return command.commands.flatMap((sub) => leavesOf(sub, `${path} ${sub.name()}`))
}

const commands = new Map(leavesOf(program, 'posthouse'))

test('the README has every command, and no other', () => {
  const written = tableOf(readme, 'Command').rows.map(([name = '', does]) => {
    assert.ok(does, `${name} does nothing`)
    return codesIn(name)[0]
  })
  assert.deepEqual(new Set(written), new Set(commands.keys()))
  assert.equal(written.length, commands.size)
})

/** Commands in the code of a document, without what follows in the same line for a shell. */
const mentions = documents.flatMap(({ path, spans, blockLines }) => [...spans, ...blockLines].flatMap((line) =>
  [...line.matchAll(/\bposthouse (?=[a-z-])([^"#|>]*)/g)].map((match) => ({ path, words: (match[1] ?? '').trim().split(/\s+/) }))))

function faultOf(words: readonly string[]): string | null {
  let at: Command = program
  let next = 0
  for (;;) {
    const found = at.commands.find((command) => command.name() === words[next])
    if (!found) break
    at = found
    next += 1
  }
  const isOption = words[next]?.startsWith('-') ?? false
  if (at.commands.length > 0 && !isOption) return `there is no command ${words.slice(0, next + 1).join(' ')}`
  const known = new Set(['--help', ...at.options.flatMap(({ long, short }) => [long, short])])
  const unknown = words.slice(next).filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split('=')[0]!).filter((word) => !known.has(word))
  return unknown.length > 0 ? `${words.slice(0, next).join(' ')} has no option ${unknown.join(', ')}` : null
}

test('commands and options that the documents name are there', () => {
  assert.ok(mentions.length > 20, 'the mentions were found')
  assert.deepEqual(mentions.flatMap(({ path, words }) => {
    const fault = faultOf(words)
    return fault === null ? [] : [`${path}: ${fault}`]
  }), [])
})

test('the README has every exit code', () => {
  const written = tableOf(readme, 'Exit code').rows.map(([code]) => Number(code))
  assert.deepEqual(written, Object.values(exitCodes).sort((a, b) => a - b))
})

test('scripts of npm and options of the sample that the documents name are there', () => {
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as { readonly scripts: Readonly<Record<string, string>> }
  for (const { path, spans, blockLines } of documents) {
    for (const line of [...spans, ...blockLines]) {
      for (const [, script = ''] of line.matchAll(/\bnpm (?:run )?(start|test|(?<=run )[a-z:]+)\b/g)) assert.ok(scripts[script], `${path}: npm run ${script}`)
      const [, options = ''] = /\bnpm start -- (.*)/.exec(line) ?? []
      for (const [option] of options.matchAll(/--[a-z]+/g)) assert.match(usage, new RegExp(`^  ${option}\\b`, 'm'), `${path}: npm start -- ${option}`)
    }
  }
})
