import net from 'node:net'
import type { ISocketFactory } from 'kafkajs'

/** A TCP proxy on loopback whose connections can be cut: kafkajs never notices a socket destroyed on its own side. */
export type TcpProxy = {
  readonly port: number
  /** For a KafkaConnection: connects here, whatever address the broker advertises. */
  readonly socketFactory: ISocketFactory
  /** Resets all connections; new ones are accepted. */
  cut(): void
  /** Refuses and resets everything until `open()`. */
  shut(): void
  open(): void
  /** While true, what the broker answers is swallowed: requests arrive, their answers do not. */
  swallowAnswers(isSwallowing: boolean): void
  connectionCount(): number
  close(): Promise<void>
}

export async function startTcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<{ readonly client: net.Socket; readonly broker: net.Socket }>()
  let isShut = false
  let isSwallowing = false

  const cut = (): void => {
    for (const { client, broker } of pairs) {
      client.resetAndDestroy()
      broker.destroy()
    }
    pairs.clear()
  }

  const server = net.createServer((client) => {
    if (isShut) {
      client.on('error', () => undefined)
      client.resetAndDestroy()
      return
    }
    const broker = net.connect(target)
    const pair = { client, broker }
    pairs.add(pair)
    const end = (): void => {
      client.destroy()
      broker.destroy()
      pairs.delete(pair)
    }
    for (const socket of [client, broker]) {
      socket.on('error', end)
      socket.on('close', end)
    }
    client.on('data', (chunk) => void broker.write(chunk))
    broker.on('data', (chunk) => {
      if (!isSwallowing) client.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo

  return {
    port,
    socketFactory: ({ onConnect }) => net.connect({ host: '127.0.0.1', port }, onConnect),
    cut,
    shut: () => {
      isShut = true
      cut()
    },
    open: () => {
      isShut = false
    },
    swallowAnswers: (value) => {
      isSwallowing = value
    },
    connectionCount: () => pairs.size,
    close: async () => {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
