import { styleText } from 'node:util'
import { alignColumns, createAligner, type Column } from './table-text.ts'
import type { CliError } from './cli-error.ts'

export const outputFormats = ['table', 'json', 'jsonl'] as const
export type OutputFormat = (typeof outputFormats)[number]

export type OutputOptions = { readonly format: OutputFormat; readonly isQuiet: boolean }

type Style = Parameters<typeof styleText>[0]

/** Data goes to standard output, everything else to standard error. */
export type Output = {
  readonly format: OutputFormat
  /** A whole list: a table, one JSON array, or one JSON object a line. */
  rows<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): void
  /** A whole list that comes in parts and may be long: printed like `rows`, and nothing of it kept. */
  stream<Row extends object>(columns: readonly Column<Row>[]): RowStream<Row>
  /** One thing: `fields` are its lines in the table format. */
  record(record: object, fields: readonly (readonly [label: string, text: string])[]): void
  /** One of many that come in time; as there is no end, `json` is one object a line too. */
  row(row: object, text: string): void
  /** Lines as they are, whatever the format: text for another tool. */
  text(text: string): void
  /** For people who watch: only on a terminal. */
  note(text: string): void
  /** What should be known wherever it goes. */
  warn(text: string): void
  /** A line that is rewritten each second while something takes long, on a terminal only; the returned function takes it away. */
  progress(text: string | (() => string)): () => void
  /** Colours for standard output: none unless it is a terminal and NO_COLOR is unset. */
  style(style: Style, text: string): string
  /** Resolves when nobody reads standard output any more: what follows for ever may end then. */
  readonly closed: Promise<void>
}

export type RowStream<Row> = {
  /** False when nobody reads any more: the rest need not be made. */
  write(rows: readonly Row[]): boolean
  end(): void
}

/** Standard output's reader may go away at any time (`| head`): that is no error, the rest is written to nobody. */
function watchForClosedPipe(): { readonly closed: Promise<void>; isClosed(): boolean } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let isClosed = false
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    isClosed = true
    resolve()
  })
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  return { closed: promise, isClosed: () => isClosed }
}

let pipe: ReturnType<typeof watchForClosedPipe> | null = null

export function createOutput({ format, isQuiet }: OutputOptions): Output {
  const { closed, isClosed } = (pipe ??= watchForClosedPipe())
  const isWatched = process.stderr.isTTY && !isQuiet
  const write = (text: string): void => {
    if (!isClosed()) process.stdout.write(text)
  }
  // styleText itself honours NO_COLOR, FORCE_COLOR and what the terminal can do.
  const style = (style: Style, text: string): string => styleText(style, text, { stream: process.stdout })

  return {
    format,
    closed,
    style,
    rows(rows, columns) {
      if (format === 'json') return write(`${JSON.stringify(rows, null, 2)}\n`)
      if (format === 'jsonl') return write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
      if (rows.length > 0) write(alignColumns(rows, columns, (title) => style('bold', title)))
    },
    stream(columns) {
      const align = createAligner(columns, (title) => style('bold', title))
      let isFirst = true
      return {
        write(rows) {
          if (rows.length > 0) {
            if (format === 'table') write(align(rows))
            else if (format === 'jsonl') write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
            else write(`${isFirst ? '[\n' : ',\n'}${rows.map((row) => JSON.stringify(row)).join(',\n')}`)
            isFirst = false
          }
          return !isClosed()
        },
        end() {
          if (format === 'json') write(isFirst ? '[]\n' : '\n]\n')
        },
      }
    },
    record(record, fields) {
      if (format !== 'table') return write(`${JSON.stringify(record, null, format === 'json' ? 2 : 0)}\n`)
      const width = Math.max(...fields.map(([label]) => label.length)) + 2
      const indented = (text: string): string => text.replaceAll('\n', `\n${' '.repeat(width)}`)
      write(fields.map(([label, text]) => `${style('bold', label.padEnd(width))}${indented(text)}\n`).join(''))
    },
    row(row, text) {
      write(format === 'table' ? `${text}\n` : `${JSON.stringify(row)}\n`)
    },
    text: write,
    note(text) {
      if (isWatched) process.stderr.write(`${text}\n`)
    },
    warn(text) {
      if (!isQuiet) process.stderr.write(`posthouse: ${text}\n`)
    },
    progress: (text) => (isWatched ? showProgress(text) : () => {}),
  }
}

const clearLine = '\r\u001b[K'

function showProgress(text: string | (() => string)): () => void {
  const begunAt = performance.now()
  const show = (): void => {
    process.stderr.write(`${clearLine}${typeof text === 'string' ? text : text()} (${Math.round((performance.now() - begunAt) / 1000)} s)`)
  }
  show()
  const timer = setInterval(show, 1_000)
  return () => {
    clearInterval(timer)
    process.stderr.write(clearLine)
  }
}

/** The end of a command that failed, on standard error: one line for people, or one JSON object. */
export function writeError({ code, message, hint }: CliError, asJson: boolean): void {
  if (asJson) process.stderr.write(`${JSON.stringify({ error: { code, message, hint } })}\n`)
  else process.stderr.write(`posthouse: ${message}${hint === null ? '' : `\n  ${hint}`}\n`)
}
