import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settings, type Setting } from '../../shared/config/settings.ts'
import { documents, readme } from './documents.ts'
import { tableOf } from './markdown.ts'

const all: readonly Setting<unknown>[] = Object.values(settings)
const names = new Set(all.map(({ name }) => name))
/** Read by commands themselves, or named because they are refused. */
const notSettings = new Set(['WEBHOOK_SECRET', 'SCHEMA_REGISTRY_URL'])

test('the README has every setting with its default, and no other', () => {
  const written = tableOf(readme, 'Setting').rows.map(([name, byDefault, meaning]) => {
    assert.ok(meaning, `${name} has no meaning`)
    return [name, byDefault?.replaceAll('\\<', '<')]
  })
  const expected = all.map(({ name, defaultText, whenUnset }) => [`\`${name}\``, defaultText === null ? `(${whenUnset})` : `\`${defaultText}\``])
  assert.deepEqual(written, expected)
})

test('the documents name no setting that is not there', () => {
  const unknown = documents.flatMap(({ path, spans, blockLines }) => [...spans, ...blockLines].flatMap((text) =>
    [...text.matchAll(/\b(?:POSTHOUSE|KAFKA|WEBHOOK|SCHEMA)_[A-Z][A-Z_]*[A-Z]\b/g)].map(([name]) => name)
      .filter((name) => !names.has(name) && !notSettings.has(name)).map((name) => `${path}: ${name}`)))
  assert.deepEqual(unknown, [])
})
