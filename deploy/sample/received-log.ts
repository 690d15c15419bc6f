import { open, type FileHandle } from 'node:fs/promises'
import { fromLine, type Arrival } from './received-line.ts'

/** The receiver's log, read as it grows. */
export type ReceivedLog = {
  /** Hands on what was written since the last call; resolves with how many lines that were. */
  read(): Promise<number>
  close(): Promise<void>
}

const chunkBytes = 256 * 1024
const newline = 0x0a

/** The file must exist. */
export async function openReceivedLog(file: string, onArrival: (arrival: Arrival) => void): Promise<ReceivedLog> {
  const handle: FileHandle = await open(file, 'r')
  const buffer = Buffer.alloc(chunkBytes)
  /** A line whose end was not written yet. */
  let begun: Buffer = Buffer.alloc(0)

  function take(bytes: Buffer): number {
    let lines = 0
    let at = 0
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, at)) {
      onArrival(fromLine(bytes.toString('utf8', at, end)))
      at = end + 1
      lines += 1
    }
    begun = Buffer.from(bytes.subarray(at))
    return lines
  }

  return {
    async read() {
      let lines = 0
      for (;;) {
        const { bytesRead } = await handle.read(buffer, 0, chunkBytes, null)
        if (bytesRead === 0) return lines
        lines += take(Buffer.concat([begun, buffer.subarray(0, bytesRead)]))
      }
    },
    close: () => handle.close(),
  }
}
