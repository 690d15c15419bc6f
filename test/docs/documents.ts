import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '../../deploy/dev/folders.ts'
import { readMarkdown, type Document } from './markdown.ts'

/** Paths from the project's root. */
export const documentPaths = ['README.md', 'docs/architecture.md'] as const

export type WrittenDocument = Document & { readonly path: string; readonly text: string }

export const documents: readonly WrittenDocument[] = documentPaths.map((path) => {
  const text = readFileSync(join(projectRoot, path), 'utf8')
  return { path, text, ...readMarkdown(text) }
})

export const readme: WrittenDocument = documents[0]!
