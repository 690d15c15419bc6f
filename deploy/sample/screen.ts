/** Where the sample shows what happens: lines that stay, and on a terminal a few below them that are rewritten in place. */
export type Screen = {
  /** Whether `show` does anything. */
  readonly isLive: boolean
  /** A line that stays. */
  say(line: string): void
  /** Takes the place of what was shown before. */
  show(lines: readonly string[]): void
}

export type ScreenStream = Pick<NodeJS.WriteStream, 'write' | 'isTTY' | 'columns'>

const clearBelow = '\u001b[0J'
const up = (lines: number): string => (lines > 0 ? `\u001b[${lines}A\r` : '')

export function createScreen(stream: ScreenStream): Screen {
  const isLive = stream.isTTY
  let shown: readonly string[] = []
  // A line that wraps would take two, and be rewritten as one.
  const fit = (line: string): string => line.slice(0, Math.max(20, (stream.columns || 80) - 1))
  const draw = (lines: readonly string[]): string => lines.map((line) => `${fit(line)}\n`).join('')
  return {
    isLive,
    say(line) {
      stream.write(isLive ? `${up(shown.length)}${clearBelow}${line}\n${draw(shown)}` : `${line}\n`)
    },
    show(lines) {
      if (!isLive) return
      stream.write(`${up(shown.length)}${clearBelow}${draw(lines)}`)
      shown = lines
    },
  }
}
