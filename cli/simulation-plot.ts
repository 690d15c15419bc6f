/** One line of the plot: the busiest second of each column. */
export type PlotRow = { readonly label: string; readonly peaks: readonly number[]; readonly note: string }

const blocks = ['', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const
const rowsHigh = 2
const levels = rowsHigh * 8

/**
 * Rows above each other on one axis of time, all with one scale, so that they can be compared. The scale is logarithmic: a herd of
 * thousands and a trickle of two a second are both to be seen. A column with any request has at least the lowest mark.
 */
export function plot(rows: readonly PlotRow[]): string {
  const highest = Math.max(1, ...rows.flatMap(({ peaks }) => peaks))
  const width = Math.max(...rows.map(({ label }) => label.length)) + 2
  return rows.map(({ label, peaks, note }) => {
    const heights = peaks.map((peak) => (peak === 0 ? 0 : 1 + Math.round((Math.log(peak) / Math.log(Math.max(2, highest))) * (levels - 1))))
    return Array.from({ length: rowsHigh }, (_, index) => {
      const isLast = index === rowsHigh - 1
      const below = (rowsHigh - 1 - index) * 8
      const bars = heights.map((height) => blocks[Math.max(0, Math.min(8, height - below))] || ' ').join('')
      return `${(isLast ? label : '').padEnd(width)}│${bars}│${isLast ? ` ${note}` : ''}`.trimEnd()
    }).join('\n')
  }).join('\n')
}

/** The line below it: marks at the beginning, the middle and the end of `columns` columns. */
export function axis(labelWidth: number, columns: number, marks: readonly [string, string, string]): string {
  const [first, middle, last] = marks
  const line = first.padEnd(Math.max(first.length + 1, Math.floor(columns / 2) - Math.floor(middle.length / 2))) + middle
  return `${' '.repeat(labelWidth + 3)}${line.padEnd(Math.max(line.length + 1, columns - last.length))}${last}`
}
