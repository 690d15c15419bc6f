import { readFile } from 'node:fs/promises'
import { CliError } from './cli-error.ts'

/** What a file holds; `-` is standard input, to its end. @throws CliError `failed`, naming the file */
export async function readInput(file: string): Promise<Buffer> {
  try {
    if (file !== '-') return await readFile(file)
    const chunks: Buffer[] = []
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk)
    return Buffer.concat(chunks)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CliError(
      'failed', `${file === '-' ? 'standard input' : file} could not be read (${code ?? String(error)})`, null,
      { cause: error },
    )
  }
}
