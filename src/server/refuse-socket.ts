/** What is not HTTP, or takes too long to become it, never reaches a route; it is answered on its bare connection. */
import type { Socket } from 'node:net'
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import { bodyOf } from './problems.ts'

const codes: Record<string, ProblemCode> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_SLOW',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
}

export function refuseSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const problem = new Problem(codes[error.code ?? ''] ?? 'REQUEST_INVALID')
  const body = JSON.stringify(bodyOf(problem))
  const head = [
    `HTTP/1.1 ${problem.status} ${problem.code}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.destroy(error)
}
