import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { documents } from './documents.ts'
import { readMarkdown } from './markdown.ts'

function faultOf(from: string, link: string): string | null {
  if (/^https?:\/\//.test(link)) return null
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? from : relative(projectRoot, join(projectRoot, dirname(from), path))
  if (target.startsWith('..')) return `${link} leads out of the project`
  if (!existsSync(join(projectRoot, target))) return `${link} leads nowhere`
  if (anchor === undefined) return null
  return readMarkdown(readFileSync(join(projectRoot, target), 'utf8')).anchors.includes(anchor) ? null : `${link}: ${target} has no such heading`
}

test('every link of the documents leads to a file, and to a heading in it', () => {
  for (const { path, links } of documents) {
    assert.ok(links.length > 10, `the links of ${path} were found`)
    assert.deepEqual(links.map((link) => faultOf(path, link)).filter((fault) => fault !== null), [], path)
  }
})

test('files and folders that the documents name are there', () => {
  for (const { path, spans } of documents) {
    const named = spans.filter((span) => /^(cli|deploy|docs|receiver|schemas|services|shared|test)\/[\w./-]*$/.test(span))
    assert.deepEqual(named.filter((name) => !existsSync(join(projectRoot, name))), [], path)
  }
})

test('the documents name nothing beside the project, and no folder of the machine they were written on', () => {
  for (const { path, text } of documents) {
    const found = [...text.matchAll(/(?<![\w.:/])\/(?:work|home|root|tmp|Users|var|mnt|opt)\b[\w/.-]*/g)].map(([name]) => name)
    const outside = [...text.matchAll(/(?:\.\.\/)+[\w./-]*/g)].map(([name]) => name).filter((name) => {
      const target = relative(projectRoot, join(projectRoot, dirname(path), name))
      return target.startsWith('..') || !existsSync(join(projectRoot, target))
    })
    assert.deepEqual([...found, ...outside], [], path)
  }
})
