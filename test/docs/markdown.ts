/** What the tests of the documents look at. Of Markdown only what they use is understood. */
export type Document = {
  /** Anchors of the headings, as GitHub makes them. */
  readonly anchors: readonly string[]
  readonly tables: readonly Table[]
  /** Targets of links, as written. */
  readonly links: readonly string[]
  /** Texts in backticks. */
  readonly spans: readonly string[]
  /** Lines of fenced blocks. */
  readonly blockLines: readonly string[]
}

/** Cells as written, without the blanks around them. */
export type Table = { readonly header: readonly string[]; readonly rows: readonly (readonly string[])[] }

export function readMarkdown(text: string): Document {
  const prose: string[] = []
  const blockLines: string[] = []
  let isInBlock = false
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isInBlock = !isInBlock
    else (isInBlock ? blockLines : prose).push(line)
  }
  const joined = prose.join('\n')
  return {
    anchors: anchorsOf(prose),
    tables: tablesOf(prose),
    links: [...joined.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? ''),
    spans: [...joined.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''),
    blockLines,
  }
}

/** The table whose first column has this title; there must be one. */
export function tableOf({ tables }: Document, title: string): Table {
  const found = tables.filter(({ header }) => header[0] === title)
  if (found.length !== 1) throw new Error(`${found.length} tables begin with a column "${title}", and there must be one`)
  return found[0]!
}

/** Texts in backticks of one cell. */
export const codesIn = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')

function anchorsOf(lines: readonly string[]): string[] {
  const seen = new Map<string, number>()
  return lines.filter((line) => /^#{1,6} /.test(line)).map((line) => {
    const plain = line.replace(/^#+ /, '').trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
    const count = seen.get(plain) ?? 0
    seen.set(plain, count + 1)
    return count === 0 ? plain : `${plain}-${count}`
  })
}

function tablesOf(lines: readonly string[]): Table[] {
  const tables: Table[] = []
  for (let at = 0; at < lines.length; at++) {
    if (!/^\|[-:|\s]+\|$/.test(lines[at + 1] ?? '') || !lines[at]!.startsWith('|')) continue
    const rows: (readonly string[])[] = []
    let next = at + 2
    while (lines[next]?.startsWith('|')) rows.push(cellsOf(lines[next++]!))
    tables.push({ header: cellsOf(lines[at]!), rows })
    at = next
  }
  return tables
}

function cellsOf(line: string): string[] {
  return line.replace(/^\|/, '').replace(/\|\s*$/, '').split(/(?<!\\)\|/).map((cell) => cell.trim())
}
