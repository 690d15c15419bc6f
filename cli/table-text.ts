/** One column of a table; `align: 'right'` for numbers. */
export type Column<Row> = {
  readonly title: string
  readonly text: (row: Row) => string
  readonly align?: 'right'
  /** Applied after the width is known, as colours take no room. */
  readonly paint?: (text: string, row: Row) => string
}

const gap = '  '

/** A table as lines, its titles first. Nothing is cut: what is too wide for the terminal wraps, what is piped stays whole. */
export function alignColumns<Row>(
  rows: readonly Row[], columns: readonly Column<Row>[], paintTitle: (title: string) => string,
): string {
  return createAligner(columns, paintTitle)(rows)
}

/** A table that comes in parts: each call gives the lines of its rows, the first one the titles too. Columns grow wider where they must. */
export function createAligner<Row>(columns: readonly Column<Row>[], paintTitle: (title: string) => string): (rows: readonly Row[]) => string {
  const widths = columns.map(({ title }) => title.length)
  let hasTitles = false
  return (rows) => {
    const cells = rows.map((row) => columns.map(({ text }) => printable(text(row))))
    for (const line of cells) for (const [index, text] of line.entries()) widths[index] = Math.max(widths[index]!, text.length)
    const lines = linesOf(rows, cells, columns, widths)
    if (hasTitles) return lines.join('')
    hasTitles = true
    return [lineOf(columns.map(({ title }) => title), paintTitle, columns, widths), ...lines].join('')
  }
}

function linesOf<Row>(rows: readonly Row[], cells: readonly (readonly string[])[], columns: readonly Column<Row>[], widths: readonly number[]): string[] {
  return cells.map((texts, row) => lineOf(texts, (text, index) => columns[index]!.paint?.(text, rows[row]!) ?? text, columns, widths))
}

function lineOf<Row>(
  texts: readonly string[], paint: (text: string, column: number) => string, columns: readonly Column<Row>[], widths: readonly number[],
): string {
  const line = texts.map((text, index) => {
    const padding = ' '.repeat(widths[index]! - text.length)
    const painted = paint(text, index)
    return columns[index]!.align === 'right' ? padding + painted : index === texts.length - 1 ? painted : painted + padding
  }).join(gap).trimEnd()
  return `${line}\n`
}

/** Event ids and the like come from others: a control character among them must not reach the terminal. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd')
}
