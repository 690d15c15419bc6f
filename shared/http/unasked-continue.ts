import type { Socket } from 'node:net'

/** Whether the next bytes of a socket are the start of a response: set when a request is written to it. */
export type AwaitingStatus = { isAwaitingStatus: boolean }

/**
 * Takes `100 Continue` out of what undici reads from a socket. Some servers send it to every POST; undici, which never asks
 * for it, ends the connection there, and each such delivery would fail although the receiver handled it. It is to be ignored
 * (RFC 9110 section 15.2). Other interim responses undici skips by itself. One that is split over two reads is not recognised.
 */
export function skipUnaskedContinue(socket: Socket, awaiting: AwaitingStatus): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null
  socket.read = (size) => {
    let chunk = read(size)
    if (!awaiting.isAwaitingStatus) return chunk
    while (chunk !== null) {
      const rest = withoutContinue(chunk)
      if (rest.length > 0) {
        awaiting.isAwaitingStatus = isInterim(rest)
        return rest
      }
      chunk = read(size)
    }
    return null
  }
}

function withoutContinue(chunk: Buffer): Buffer {
  let rest = chunk
  while (isInterim(rest) && rest.toString('latin1', 10, 13).trimEnd() === '00') {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) break
    rest = rest.subarray(end + 4)
  }
  return rest
}

const one = 0x31

// `HTTP/1.1 1..`: the status begins at the tenth byte. What is not HTTP at all is undici's to refuse.
const isInterim = (bytes: Buffer): boolean => bytes[9] === one && bytes.toString('latin1', 0, 7) === 'HTTP/1.'
