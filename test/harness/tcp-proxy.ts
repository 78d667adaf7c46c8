/** A TCP proxy in front of a server, with the faults of real networks. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface TcpProxy {
  readonly port: number
  /** The same URL with the port of the proxy. */
  through(url: string): string
  /** Freezes open connections in both directions. New ones work. */
  freeze(): void
  /** Accepts connections, but freezes all of them. */
  freezeAll(): void
  /** Lets new connections work again. Frozen ones stay frozen. */
  thaw(): void
  /** Resets every open connection. */
  reset(): void
  /** Delays what the server sends by this time, and then sends it in one piece. */
  coalesceMs: number
  /** The port that new connections are passed on to. */
  target: number
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
  isFrozen: boolean
}

export async function tcpProxy(t: TestContext, port: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let isAllFrozen = false
  const proxy = createServer(client => {
    const pair: Pair = { client, server: connect(self.target, '127.0.0.1'), isFrozen: isAllFrozen }
    pairs.add(pair)
    const end = () => {
      // A frozen connection does not report that its other end is gone.
      if (pair.isFrozen) return
      pairs.delete(pair)
      client.destroy()
      pair.server.destroy()
    }
    for (const socket of [client, pair.server]) {
      socket.setNoDelay(true)
      socket.on('error', end)
      socket.on('close', end)
    }
    client.on('data', data => {
      if (!pair.isFrozen) pair.server.write(data)
    })
    let held: Buffer[] = []
    pair.server.on('data', data => {
      if (pair.isFrozen) return
      if (self.coalesceMs === 0) return void client.write(data)
      if (held.push(data) > 1) return
      setTimeout(() => {
        if (!client.destroyed) client.write(Buffer.concat(held))
        held = []
      }, self.coalesceMs)
    })
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const { port: own } = proxy.address() as AddressInfo
  const self: TcpProxy = {
    port: own,
    through: url => Object.assign(new URL(url), { port: String(own) }).href,
    freeze() {
      for (const pair of pairs) pair.isFrozen = true
    },
    freezeAll() {
      isAllFrozen = true
      self.freeze()
    },
    thaw() {
      isAllFrozen = false
    },
    reset() {
      for (const { client, server } of pairs) {
        client.resetAndDestroy()
        server.destroy()
      }
    },
    coalesceMs: 0,
    target: port,
  }
  t.after(() => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
    proxy.close()
  })
  return self
}
