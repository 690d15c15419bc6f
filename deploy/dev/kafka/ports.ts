import { connect, createServer } from 'node:net'

/** Ports of loopback that nothing listens on now, all different. Another process may take one before it is used: try again then. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listenOn(0)))
  return Promise.all(servers.map(({ port, close }) => close().then(() => port)))
}

export async function isPortFree(port: number): Promise<boolean> {
  try {
    await (await listenOn(port)).close()
    return true
  } catch {
    return false
  }
}

/** Whether something accepts connections on a port of loopback. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    const answer = (isOpen: boolean) => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once('connect', () => answer(true))
    socket.once('error', () => answer(false))
    socket.setTimeout(1_000, () => answer(false))
  })
}

function listenOn(port: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      const address = server.address()
      if (typeof address !== 'object' || !address) return reject(new Error('a listening socket has no address'))
      resolve({ port: address.port, close: () => new Promise((closed) => server.close(() => closed())) })
    })
  })
}
