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
  const cells = rows.map((row) => columns.map(({ text }) => printable(text(row))))
  const widths = columns.map(({ title }, index) => Math.max(title.length, ...cells.map((line) => line[index]!.length)))
  const line = (texts: readonly string[], paint: (text: string, column: number) => string): string => texts.map((text, index) => {
    const isLast = index === texts.length - 1
    const padding = ' '.repeat(widths[index]! - text.length)
    const painted = paint(text, index)
    return columns[index]!.align === 'right' ? padding + painted : isLast ? painted : painted + padding
  }).join(gap).trimEnd()
  return [
    line(columns.map(({ title }) => title), paintTitle),
    ...cells.map((texts, row) => line(texts, (text, index) => columns[index]!.paint?.(text, rows[row]!) ?? text)),
  ].map((text) => `${text}\n`).join('')
}

/** Event ids and the like come from others: a control character among them must not reach the terminal. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd')
}
