import type { Command } from 'commander'
import { deadLetterKey } from '../../shared/dead-letters/key.ts'
import { chooseNamed } from '../../shared/dead-letters/named.ts'
import { indexDeadLetters, readDeadLetters, type FoundDeadLetter } from '../../shared/dead-letters/scan.ts'
import { describeClearing } from '../../shared/dead-letters/tombstone.ts'
import { storyOf, viewOfDeadLetter, type DeadLetterStory } from '../../shared/dead-letters/view.ts'
import { CliError } from '../cli-error.ts'
import { act, addCommand, addNoun, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import { filterOf, openDeadLetters, withFilter, type FilterOptions } from '../dead-letter-session.ts'
import { deadLetterColumns, fieldsOf } from '../dead-letter-view.ts'
import { withKafka } from '../kafka-session.ts'
import { timeText } from '../scan-session.ts'
import { createLatest } from '../latest.ts'
import { addDiscardCommand } from './dlq-discard.ts'
import { addReplayCommand } from './dlq-replay.ts'

const listHelp = `
The latest come first; where there are more than 10,000, in the order of the topic. A key is the delivery id and the number of the
replay that failed (0: none yet). Take --output jsonl for a long list, and --limit for the latest only.`

const exportHelp = `
One dead letter a line (an array with --output json), with all that is kept of it: body and headers exactly, as text where they are
UTF-8 and as base64 where not, and every attempt. What this version cannot read is left out, and said.`

export function addDlqCommands(program: Command): void {
  const dlq = addNoun(program, 'dlq', 'dead letters: deliveries that could not be made')
  withFilter(addCommand(dlq, 'list', 'list dead letters'))
    .option('--limit <n>', 'at most so many, the latest', wholeNumber(1, mostSorted))
    .addHelpText('after', listHelp)
    .action(act(list))
  addCommand(dlq, 'show <id>', 'show one dead letter, by its key or its delivery id: headers, body and every attempt')
    .action(act(show))
  withFilter(addCommand(dlq, 'export', 'print dead letters whole, as JSON Lines'))
    .addHelpText('after', exportHelp)
    .action(act(exportAll))
  addReplayCommand(dlq)
  addDiscardCommand(dlq)
}

/** So many are sorted by time before they are printed. */
const mostSorted = 10_000

async function list(context: Context, { limit, ...options }: FilterOptions & { readonly limit?: number }): Promise<void> {
  const { output } = context
  await withKafka(context, async (kafka) => {
    const stream = output.stream(deadLetterColumns)
    const openCount = await visit(context, await openDeadLetters(kafka), filterOf(options), (openCount) => {
      const latest = limit === undefined && openCount > mostSorted ? null : createLatest<FoundDeadLetter>(limit ?? mostSorted, (one) => one.facts.diedAt)
      return {
        take(letters) {
          if (latest === null) return stream.write(letters.map(viewOfDeadLetter))
          for (const letter of letters) latest.add({ ...letter, content: withoutBody(letter.content) })
          return true
        },
        end: () => void stream.write((latest?.newestFirst() ?? []).map(viewOfDeadLetter)),
      }
    })
    stream.end()
    if (openCount === 0) output.note('There are no dead letters.')
  })
}

/** What a list shows of it: thousands are held until they are sorted. */
function withoutBody(content: FoundDeadLetter['content']): FoundDeadLetter['content'] {
  if (content.kind !== 'readable') return content
  const { deadLetter } = content
  const delivery = { ...deadLetter.delivery, body: Buffer.alloc(0), sourceKey: null, sourceHeaders: [], attempts: [] }
  return { kind: 'readable', deadLetter: { ...deadLetter, delivery } }
}

async function exportAll(context: Context, options: FilterOptions): Promise<void> {
  const { output } = context
  await withKafka(context, async (kafka) => {
    // Whole dead letters have no columns: the table format is a line of JSON each.
    const stream = output.stream<DeadLetterStory>([])
    await visit(context, await openDeadLetters(kafka), filterOf(options), () => ({
      take(letters) {
        const stories = letters.map(storyOf).filter((story) => story !== null)
        if (output.format !== 'table') return stream.write(stories)
        output.text(stories.map((story) => `${JSON.stringify(story)}\n`).join(''))
        return stream.write([])
      },
      end() {},
    }))
    stream.end()
  })
}

type Visitor = {
  /** False: no more of them. */
  take(letters: readonly FoundDeadLetter[]): boolean
  end(): void
}

/** Reads those that are open. Returns how many there are, whatever the filter. */
async function visit(
  context: Context, source: Awaited<ReturnType<typeof openDeadLetters>>, filter: ReturnType<typeof filterOf>, visitorOf: (openCount: number) => Visitor,
): Promise<number> {
  const { output, signal } = context
  let [doing, done, total] = ['indexing', 0, 0]
  const onProgress = (now: number, of: number): void => { [done, total] = [now, of] }
  let [superseded, unreadable] = [0, 0]
  const work = async (): Promise<number> => {
    const index = await indexDeadLetters(source, filter, { signal, onProgress })
    doing = 'reading'
    const visitor = visitorOf(index.keys.openCount())
    for await (const letters of readDeadLetters(source, index, filter, { signal, onProgress })) {
      const open = letters.filter(({ standing }) => standing.kind === 'open')
      superseded += letters.length - open.length
      unreadable += open.filter(({ content }) => content.kind !== 'readable').length
      if (!visitor.take(open)) break
    }
    visitor.end()
    return index.keys.openCount()
  }
  const openCount = await context.wait(() => `${doing} dead letters: ${done} of ${total} records`, work())
  if (superseded > 0) output.warn(`${superseded} more were replayed by a command that was killed before it could clear them: the next replay of these does`)
  if (unreadable > 0) output.warn(`${unreadable} dead letters cannot be read by this version; those of a newer posthouse wait for it`)
  return openCount
}

async function show(context: Context, id: string): Promise<void> {
  const { output } = context
  await withKafka(context, async (kafka) => {
    const source = await openDeadLetters(kafka)
    const found = await context.wait('reading dead letters', find(source, id))
    if (typeof found === 'string') throw new CliError('not_found', found, 'see those there are with "posthouse dlq list"')
    const story = storyOf(found)
    if (story === null) {
      const view = viewOfDeadLetter(found)
      output.record(view, Object.entries(view).filter(([, value]) => value !== null).map(([name, value]) => [name, String(value)]))
      output.warn(`the dead letter ${deadLetterKey(found.id)} cannot be read by this version; its headers say this much`)
      return
    }
    output.record(story, fieldsOf(story))
  })
}

/** A sentence where there is nothing to show. */
async function find(source: Awaited<ReturnType<typeof openDeadLetters>>, id: string): Promise<FoundDeadLetter | string> {
  const index = await indexDeadLetters(source, { ids: [id] }, { isOneLook: true })
  const key = chooseNamed(index, [id]).keys.map((text) => index.named.get(text)!).sort((a, b) => b.id.replay - a.id.replay)[0]
  if (!key) return `there is no dead letter ${id}`
  const filter = { ids: [deadLetterKey(key.id)] }
  for await (const [letter] of readDeadLetters(source, index, filter, { includesCleared: true })) if (letter) return letter
  const { cleared } = key
  return `there is no dead letter ${id} any more${cleared === null ? '' : `: it was ${describeClearing(cleared.clearing)} at ${timeText(cleared.at)}`}`
}
