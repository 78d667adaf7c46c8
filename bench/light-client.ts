// A cheap HTTP client, so that a measure shows the cost of the server and not of the client: one socket, one
// request at a time, and answers with a Content-Length.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface Answer {
  status: number
  body: unknown
}

export type Ask = (method: string, path: string, body?: unknown) => Promise<Answer>

export interface LightClient {
  ask: Ask
  close(): void
}

export async function openLightClient(server: string): Promise<LightClient> {
  const { hostname, port } = new URL(server)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  await once(socket, 'connect')
  const answers = readAnswers(socket)
  return {
    async ask(method, path, body) {
      const text = body === undefined ? '' : JSON.stringify(body)
      const type = body === undefined ? '' : 'content-type: application/json\r\n'
      const length = method === 'GET' ? '' : `content-length: ${Buffer.byteLength(text)}\r\n`
      socket.write(`${method} ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${type}${length}\r\n${text}`)
      const answer = await answers()
      if (answer.status >= 400 && answer.status !== 404) {
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      return answer
    },
    close: () => void socket.destroy(),
  }
}

/** Opens several clients, calls `work` with each, and closes them. */
export async function withLightClients(
  server: string,
  count: number,
  work: (ask: Ask, index: number) => Promise<void>,
): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => openLightClient(server)))
  try {
    await Promise.all(clients.map(({ ask }, index) => work(ask, index)))
  } finally {
    for (const client of clients) client.close()
  }
}

function readAnswers(socket: Socket): () => Promise<Answer> {
  let received: Buffer = Buffer.alloc(0)
  let waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined
  let failure: Error | undefined
  const fail = (error: Error) => {
    failure ??= error
    waiting?.reject(failure)
    waiting = undefined
  }
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed the connection')))
  socket.on('data', (data: Buffer) => {
    received = received.length === 0 ? data : Buffer.concat([received, data])
    const answer = parseAnswer(received)
    if (answer === undefined || waiting === undefined) return
    received = received.subarray(answer.end)
    waiting.resolve(answer)
    waiting = undefined
  })
  return () =>
    new Promise((resolve, reject) => {
      if (failure !== undefined) reject(failure)
      else waiting = { resolve, reject }
    })
}

/** Undefined: the answer is not complete yet. */
function parseAnswer(received: Buffer): (Answer & { end: number }) | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const head = received.toString('latin1', 0, headEnd)
  if (/^transfer-encoding:/im.test(head)) throw new Error('this client does not read chunked answers')
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  const end = headEnd + 4 + length
  if (received.length < end) return undefined
  const text = received.toString('utf8', headEnd + 4, end)
  return { status: Number(head.slice(9, 12)), body: text === '' ? undefined : JSON.parse(text), end }
}
