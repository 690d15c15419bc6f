import { readFile } from 'node:fs/promises'
import { addAbortSignal } from 'node:stream'
import { CliError } from './cli-error.ts'

/** What a file holds; `-` is standard input, to its end or until `signal` aborts. @throws CliError `failed`, naming the file */
export async function readInput(file: string, signal: AbortSignal): Promise<Buffer> {
  try {
    if (file !== '-') return await readFile(file, { signal })
    const chunks: Buffer[] = []
    // Ctrl-C is ours to heed once it has a listener: without this the first one would do nothing.
    addAbortSignal(signal, process.stdin)
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk)
    return Buffer.concat(chunks)
  } catch (error) {
    signal.throwIfAborted()
    const { code } = error as NodeJS.ErrnoException
    throw new CliError(
      'failed', `${file === '-' ? 'standard input' : file} could not be read (${code ?? String(error)})`, null,
      { cause: error },
    )
  }
}
