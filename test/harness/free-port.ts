import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port that nobody listened on a moment ago: for programs that are started again on the same one. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
