/** A network between client and server that loses, cuts and delays requests and answers. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { Dice } from './dice.ts'

export interface BadNetwork {
  /** The URL of the server through this network. */
  readonly url: string
  /** Numbers of lost requests and answers. */
  readonly lost: { requests: number; answers: number }
  /** Stops losing messages. */
  mend(): void
}

export interface Weather {
  /** The share of messages that are lost, each with its connection. */
  readonly loses: number
  /** The longest delay of a message. */
  readonly delayMs: number
}

export async function badNetwork(t: TestContext, to: () => string, dice: Dice, weather: Weather): Promise<BadNetwork> {
  const lost = { requests: 0, answers: 0 }
  let loses = weather.loses
  const open = new Set<Socket>()
  const proxy = createServer(client => {
    const { hostname, port } = new URL(to())
    const server = connect(Number(port), hostname)
    const cut = () => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', cut)
      socket.on('close', () => {
        open.delete(socket)
        cut()
      })
    }
    carry(client, server, 'requests', cut)
    carry(server, client, 'answers', cut)
  })
  function carry(from: Socket, into: Socket, kind: 'requests' | 'answers', cut: () => void): void {
    let before = Promise.resolve()
    from.on('data', part => {
      const isLost = dice.throw() < loses
      if (isLost) lost[kind] += 1
      const delayMs = dice.throw() * weather.delayMs
      before = before.then(async () => {
        if (delayMs > 0) await new Promise(resolve => setTimeout(resolve, delayMs))
        if (isLost) cut()
        else if (!into.destroyed) into.write(part)
      })
    })
  }
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of open) socket.destroy()
    proxy.close()
  })
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    lost,
    mend() {
      loses = 0
    },
  }
}
